"""`trtplug tactics`: the kernels that the builder tried for each layer, and how far each lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import DONE, UsageError

if TYPE_CHECKING:
    from trtplug.report.report import Report


def tactics(
    file: Annotated[Path, typer.Argument(help="A bundle, or a report of one.")],
    layer: Annotated[
        list[str] | None,
        typer.Option(help="Only layers or ONNX nodes of that name, or that match a glob."),
    ] = None,
    near_ties: Annotated[
        bool, typer.Option("--near-ties", help="Only layers whose runner-up is within 5 %.")
    ] = False,
    format: Annotated[Format, typer.Option(help="Form of the result on stdout.")] = Format.TEXT,
) -> int:
    """Show the tactics that were tried for each layer, their times and the margin."""
    from trtplug.cli.tactic_tables import candidate_tables, render_tactics

    found = [
        candidate_tables(report, tuple(layer or ()), near_ties=near_ties)
        for report in _reports(file)
    ]
    recorded = [tables for tables in found if tables is not None]
    tables = [table for tables in recorded for table in tables] if recorded else None
    typer.echo(render_tactics(tables, format), nl=False)
    return DONE


def _reports(file: Path) -> list[Report]:
    """Every report of a bundle, or the one in a file.

    Raises:
        UsageError: the folder is no bundle.
        DocumentError: one cannot be read.
    """
    from trtplug.document import read_document
    from trtplug.engine.manifest import MANIFEST, read_manifest
    from trtplug.report.report import SCHEMA, Report

    if not file.is_dir():
        return [read_document(Report, SCHEMA, file)]
    if not (file / MANIFEST).is_file():
        raise UsageError(f"{file} is a folder without {MANIFEST}", "a bundle has one")
    targets = read_manifest(file).targets
    return [read_document(Report, SCHEMA, file / t.sm / "report.json") for t in targets]
