"""`trtplug tactics`: the tactics that the builder timed for each layer."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, epilog, format_option, path
from trtplug.errors import DONE, UsageError
from trtplug.globs import matches_any
from trtplug.report.data import ReportCandidate
from trtplug.report.rows import margin_words
from trtplug.report.tables import render_grid, render_json, render_titled
from trtplug.report.words import UNKNOWN, format_ratio, format_us

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.report.data import Report


SCHEMA = "trtplug.candidates/1"

_HEAD = ("", "kernel", "time us", "x fastest", "time is", "tactic")
_FIGURES = ("time us", "x fastest")
_NOTE = "Times are of single kernels, by the builder; they are not measured in the engine.\n"
_NONE = (
    "no tactics are recorded: TensorRT-RTX chooses kernels when an engine first runs, and TensorRT "
    "reports only tactics that it timed, not those from the timing cache "
    "(`trtplug build --no-timing-cache --force` times all of them)\n"
)
_NO_MATCH = "no layer matches\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The tactics of one layer, or of an operation that matches no layer."""

    target: str
    layer: str | None
    """None if no layer matches."""
    op: str | None
    """The builder's name, if no layer matches."""
    cache_key: str | None
    onnx_nodes: tuple[str, ...]
    margin: float | None
    near_tie: bool | None
    candidates: tuple[ReportCandidate, ...]

    @property
    def name(self) -> str:
        """Layer, or operation of the builder."""
        return self.layer if self.layer is not None else self.op or ""


def candidate_tables(
    report: Report, wanted: tuple[str, ...], *, near_ties: bool
) -> list[Table] | None:
    """The selected tables of one report; None if it has no tables."""
    joined = [
        Table(
            target=report.target,
            layer=layer.name,
            op=None,
            cache_key=layer.cache_key,
            onnx_nodes=layer.onnx_nodes,
            margin=layer.margin,
            near_tie=layer.near_tie,
            candidates=layer.candidates,
        )
        for layer in report.layers
        if layer.candidates
    ]
    apart = [
        Table(
            target=report.target,
            layer=None,
            op=table.op,
            cache_key=table.cache_key,
            onnx_nodes=table.onnx_nodes,
            margin=table.margin,
            near_tie=table.near_tie,
            candidates=table.candidates,
        )
        for table in report.unjoined_candidates
    ]
    found = [*joined, *apart]
    if not found:
        return None
    return [t for t in found if _is_wanted(t, wanted) and (t.near_tie or not near_ties)]


def _is_wanted(table: Table, wanted: tuple[str, ...]) -> bool:
    names = (table.name, *table.onnx_nodes)
    return not wanted or any(matches_any(name, wanted) for name in names)


def render_tactics(tables: Sequence[Table] | None, form: Format) -> str:
    """All tables; None if nothing is recorded."""
    if form is Format.JSON:
        return render_json(SCHEMA, {"tables": [dataclasses.asdict(t) for t in tables or ()]})
    if not tables:
        return _NONE if tables is None else _NO_MATCH
    return "\n".join([*(_table(table, form) for table in tables), _NOTE])


def _table(table: Table, form: Format) -> str:
    rows = [_row(candidate) for candidate in table.candidates]
    return render_titled(_title(table), render_grid(_HEAD, rows, form, _FIGURES), form)


def _title(table: Table) -> str:
    where = "" if table.layer is not None else " (layer unknown)"
    nodes = f" [{' '.join(table.onnx_nodes)}]" if table.onnx_nodes else ""
    margin = margin_words(table.margin, table.near_tie)
    return f"{table.target}  {table.name}{where}{nodes}  margin {margin}"


_TIMED_BY = {"builder": "timed by the builder", "prediction": "predicted", None: "not timed"}


def _row(candidate: ReportCandidate) -> tuple[str, ...]:
    return (
        "chosen" if candidate.chosen else "",
        candidate.kernel,
        format_us(candidate.time_us),
        format_ratio(candidate.ratio),
        _TIMED_BY[candidate.timed_by],
        candidate.tactic_hash or UNKNOWN,
    )


@click.command(
    epilog=epilog(
        "trtplug tactics out --layer 'Conv@12'", "trtplug tactics out/sm_90/report.json --near-ties"
    )
)
@click.argument("file", type=path)
@click.option(
    "--layer",
    multiple=True,
    metavar="GLOB",
    help="Only these layers or ONNX nodes, by name; repeatable.",
)
@click.option("--near-ties", is_flag=True, help="Only layers whose runner-up is within 5 %.")
@format_option
def tactics(file: Path, layer: tuple[str, ...], near_ties: bool, format: Format) -> int:
    """Show the tactics that TensorRT timed for each layer.

    FILE is a bundle or a report.
    """
    found = [candidate_tables(report, layer, near_ties=near_ties) for report in _reports(file)]
    recorded = [tables for tables in found if tables is not None]
    tables = [table for tables in recorded for table in tables] if recorded else None
    click.echo(render_tactics(tables, format), nl=False)
    return DONE


def _reports(file: Path) -> list[Report]:
    """Every report of a bundle, or the one in a file.

    Raises:
        UsageError: the folder is not a bundle.
        DocumentError: one cannot be read.
    """
    from trtplug.bundle.manifest import MANIFEST, read_manifest
    from trtplug.document import read_document
    from trtplug.report.data import SCHEMA, Report

    if not file.is_dir():
        return [read_document(Report, SCHEMA, file)]
    if not (file / MANIFEST).is_file():
        raise UsageError(f"{file} is a folder without {MANIFEST}", "a bundle has one")
    targets = read_manifest(file).targets
    return [read_document(Report, SCHEMA, file / t.sm / "report.json") for t in targets]
