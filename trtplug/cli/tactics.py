"""`trtplug tactics`: the kernels that the builder tried for each layer, and how far each lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, format_option, path
from trtplug.errors import DONE, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.report.report import Report


@click.command()
@click.argument("file", type=path)
@click.option(
    "--layer",
    multiple=True,
    help="Only layers or ONNX nodes of that name, or that match a glob; repeatable.",
)
@click.option("--near-ties", is_flag=True, help="Only layers whose runner-up is within 5 %.")
@format_option
def tactics(file: Path, layer: tuple[str, ...], near_ties: bool, format: Format) -> int:
    """Show the tactics that were tried for each layer.

    Their times and the margin, from a bundle or a report.
    """
    from trtplug.cli.tactic_tables import candidate_tables, render_tactics

    found = [candidate_tables(report, layer, near_ties=near_ties) for report in _reports(file)]
    recorded = [tables for tables in found if tables is not None]
    tables = [table for tables in recorded for table in tables] if recorded else None
    click.echo(render_tactics(tables, format), nl=False)
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
