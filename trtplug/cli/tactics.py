"""`trtplug tactics`: the tactics that the builder timed for each layer.

From a bundle, a report, or any VERBOSE log.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, echo, epilog, format_option, lines_of, path
from trtplug.errors import DONE, UsageError
from trtplug.report.data import ReportCandidate
from trtplug.report.rows import margin_words
from trtplug.report.tables import render_grid, render_json, render_titled
from trtplug.report.words import UNKNOWN, format_ratio, format_us
from trtplug.settings import matches_any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.backends.tactic_table import CandidateTable, TacticLog
    from trtplug.report.data import Report, ReportCandidateTable, ReportLayer


SCHEMA = "trtplug.candidates/1"
LOG_SCHEMA = "trtplug.tactic-log/1"

_HEAD = ("", "kernel", "time us", "x fastest", "time is", "tactic")
_FIGURES = ("time us", "x fastest")
_NOTE = "Times are of single kernels, by the builder; they are not measured in the engine.\n"
_NONE = (
    "no tactics are recorded: TensorRT-RTX chooses kernels when an engine first runs; TensorRT "
    "lists those that it times, and names the one that came from the timing cache "
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
    sources: list[tuple[ReportLayer | ReportCandidateTable, str | None, str | None]] = [
        *((layer, layer.name, None) for layer in report.layers if layer.candidates),
        *((table, None, table.op) for table in report.unjoined_candidates),
    ]
    found = [
        Table(
            target=report.target,
            layer=layer,
            op=op,
            cache_key=each.cache_key,
            onnx_nodes=each.onnx_nodes,
            margin=each.margin,
            near_tie=each.near_tie,
            candidates=each.candidates,
        )
        for each, layer, op in sources
    ]
    if not found:
        return None
    return [
        t
        for t in found
        if _is_named((t.name, *t.onnx_nodes), wanted) and (t.near_tie or not near_ties)
    ]


def _is_named(names: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
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


_TIMED_BY = {
    "builder": "timed by the builder",
    "cache": "from the cache",
    "prediction": "predicted",
    None: "not timed",
}


def _row(candidate: ReportCandidate) -> tuple[str, ...]:
    return (
        "chosen" if candidate.chosen else "",
        candidate.kernel,
        format_us(candidate.time_us),
        format_ratio(candidate.ratio),
        _TIMED_BY[candidate.timed_by],
        candidate.tactic_hash or UNKNOWN,
    )


def render_log(log: TacticLog, tables: Sequence[CandidateTable], form: Format) -> str:
    """A builder's log: table after table, what came from the cache, and what could not be read."""
    rows = sum(len(table.candidates) for table in tables)
    if form is Format.JSON:
        record = {
            "tables": list(map(_logged, tables)),
            "rows": rows,
            "hits": [dataclasses.asdict(hit) for hit in log.hits],
            "warnings": list(log.warnings),
        }
        return render_json(LOG_SCHEMA, record)
    shown = [_log_table(table, form) for table in tables if table.candidates]
    if log.hits:
        hits = [
            (hit.layer, hit.formats, hit.runner, _us(hit.cost_ms), hit.tactic_hash)
            for hit in log.hits
        ]
        head = ("from the cache", "formats", "runner", "time us", "tactic")
        shown.append(render_grid(head, hits, form, ("time us",)))
    end = f"{len(tables):,} tables, {rows:,} rows, {len(log.hits):,} from the cache"
    return "\n".join([*shown, lines_of([*(f"warning: {w}" for w in log.warnings), end], form)])


def _logged(table: CandidateTable) -> dict[str, object]:
    return {
        "layer": table.op,
        "formats": table.formats,
        "runner": _runner(table),
        "tuner": table.tuner,
        "cache_key": table.key or None,
        "onnx_nodes": list(table.onnx_layers),
        "rows": [
            {
                "kernel": row.kernel,
                "tactic": row.tactic_hash,
                "time_us": None if row.cost_ms is None else row.cost_ms * 1000,
                "runner": row.runner,
            }
            for row in table.candidates
        ],
        "chosen": table.selected,
        "margin": table.margin,
    }


def _runner(table: CandidateTable) -> str:
    """That of the tactic that was taken, or of the first row; the compiler is one."""
    rows = [table.chosen, *table.candidates]
    named = (row.runner for row in rows if row is not None and row.runner)
    return next(named, table.tuner if table.tuner == "compiler" else "")


def _log_table(table: CandidateTable, form: Format) -> str:
    from trtplug.report.candidates import report_candidates

    rows = [_row(candidate) for candidate in report_candidates(table)]
    nodes = f"  [{' '.join(table.onnx_layers)}]" if table.onnx_layers else ""
    parts = (table.op, table.formats, _runner(table))
    title = "  ".join(filter(None, parts)) + nodes
    title += f"  margin {margin_words(table.margin, table.near_tie)}"
    return render_titled(title, render_grid(_HEAD, rows, form, _FIGURES), form)


def _us(time_ms: float | None) -> str:
    return format_us(None if time_ms is None else time_ms * 1000)


@click.command(
    epilog=epilog(
        "trtplug tactics out --layer 'Conv@12'", "trtplug tactics build.log --format json"
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

    FILE is a bundle, a report, or any VERBOSE log of TensorRT: of trtexec, Polygraphy or a program
    of your own.
    """
    text = _log_text(file)
    if text is not None:
        log = _read_log(file, text)
        kept = [
            t
            for t in log.tables
            if _is_named((t.op, *t.onnx_layers), layer) and (t.near_tie or not near_ties)
        ]
        echo(render_log(log, kept, format))
        return DONE
    found = [candidate_tables(report, layer, near_ties=near_ties) for report in _reports(file)]
    recorded = [tables for tables in found if tables is not None]
    tables = [table for tables in recorded for table in tables] if recorded else None
    echo(render_tactics(tables, format))
    return DONE


_DOCUMENT = re.compile(rb"\s*(\{|$)")
"""How a report starts."""
_START_BYTES = 4096


def _log_text(file: Path) -> str | None:
    """A log's text; None for a folder, a report, and what cannot be read (that is said later)."""
    if not file.is_file():
        return None
    try:
        with file.open("rb") as stream:
            if _DOCUMENT.match(stream.read(_START_BYTES)):
                return None
        data = file.read_bytes()
    except OSError:
        return None
    # PowerShell writes what it redirects as UTF-16.
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if wide else "utf-8", "replace")


def _read_log(file: Path, text: str) -> TacticLog:
    """The tables of a log.

    Raises:
        UsageError: there are none.
    """
    from trtplug.backends.trt.tactic_log import parse_tactic_text

    log = parse_tactic_text(text)
    if not (log.tables or log.hits):
        raise UsageError(
            f"{file} holds no tactics",
            "a bundle, a report and a VERBOSE log do, such as that of `trtexec --verbose`",
        )
    return log


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
