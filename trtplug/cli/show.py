"""Plans, bundles and reports on stdout."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import echo
from trtplug.document import to_json
from trtplug.report.tables import Format, render_rows
from trtplug.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.build.command import Built
    from trtplug.bundle.manifest import Manifest, ManifestTarget
    from trtplug.plan import Plan, PlannedSite
    from trtplug.report.data import Report


def plan_text(plan: Plan) -> str:
    """A plan as text."""
    facts = [
        ("model", f"{plan.model_file}  sha256 {plan.model_sha256[:16]}"),
        ("builder", f"{plan.backend} {plan.backend_version}"),
        ("shapes", ", ".join(plan.shapes) or "as in the model"),
        ("precision", plan.precision),
        ("flags", ", ".join(f"{k}={v}" for k, v in plan.flags.items())),
        ("out", str(plan.out)),
    ]
    lines = [render_rows(facts, Format.TEXT)]
    for target in plan.targets:
        what = "build" if target.supported else "cannot be built by this backend"
        what = "take from the store" if target.in_store else what
        lines.append(f"{target.target}  {what}  (serves {', '.join(target.gpus) or 'no profile'})")
        lines += map(_site_line, target.sites or ())
    return "\n".join(lines) + "\n"


def _site_line(site: PlannedSite) -> str:
    tactics = f" {', '.join(site.tactics)}" if site.tactics else ""
    return f"  {site.choice}  {visible(site.site)}{tactics}  ({visible(site.reason)})"


def show_bundle(built: Built, out: Path, format: Format) -> None:
    """The result of a build: the manifest as JSON, or reports and a summary."""
    manifest = built.manifest
    if format is Format.JSON:
        echo(to_json(manifest))
        return
    shown = manifest.targets if format is Format.MARKDOWN else manifest.targets[:1]
    show_reports([_report(built, out, target) for target in shown], format)
    if shown and format is Format.TEXT:
        echo("\n")
    for failure in manifest.failures:
        hint = f"hint: {failure.hint}\n" if failure.hint else ""
        echo(f"error[{failure.code}]: {failure.message}\n{hint}", err=True)
    echo(_summary(manifest, out), err=format is Format.MARKDOWN)


def show_reports(reports: Sequence[Report], format: Format) -> None:
    """Reports as Markdown, or as text in the width and the colours of the terminal."""
    if format is Format.MARKDOWN:
        from trtplug.report.markdown import report_to_markdown

        echo("\n".join(map(report_to_markdown, reports)))
        return
    from trtplug.report.text import report_to_text

    width = min(max(shutil.get_terminal_size((100, 24)).columns, 80), 160)
    for report in reports:
        # Not by `echo`, which would escape the colours: names in it are escaped already.
        click.echo(report_to_text(report, width=width, color=sys.stdout.isatty()).rstrip("\n"))


def _report(built: Built, out: Path, target: ManifestTarget) -> Report:
    from trtplug.document import from_own_json
    from trtplug.report.data import Report

    made = built.reports.get(target.target)
    if made is not None:
        return made
    return from_own_json(Report, (out / target.sm / "report.json").read_bytes())


def _summary(manifest: Manifest, out: Path) -> str:
    lines = []
    for target in manifest.targets:
        lines += [
            f"{target.target}  serves {', '.join(target.gpus) or 'no known GPU'}",
            f"  engine  {out / target.engine.file}  ({target.engine.bytes / 2**20:.1f} MiB)",
            f"  sha256  {target.engine.sha256}",
            f"  report  {out / target.sm / 'report.html'}",
        ]
    lines += [f"{f.target}  FAILED  {f.code}" for f in manifest.failures]
    return "\n".join(lines) + "\n"
