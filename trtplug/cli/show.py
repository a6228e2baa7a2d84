"""Plans, bundles and reports on stdout."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from trtplug.document import to_json
from trtplug.report.tables import Format, render_rows
from trtplug.report.words import printable, visible

if TYPE_CHECKING:
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
        click.echo(to_json(manifest), nl=False)
        return
    if format is Format.MARKDOWN:
        from trtplug.report.markdown import report_to_markdown

        reports = (_report(built, out, target) for target in manifest.targets)
        click.echo("\n".join(report_to_markdown(r) for r in reports), nl=False)
    elif manifest.targets:
        click.echo(render_text(_report(built, out, manifest.targets[0])))
    _show_failures(manifest)
    click.echo(_summary(manifest, out), nl=False, err=format is Format.MARKDOWN)


def render_text(report: Report) -> str:
    """A report as text, in the width of the terminal."""
    from trtplug.report.text import report_to_text

    width = min(max(shutil.get_terminal_size((100, 24)).columns, 80), 160)
    return report_to_text(report, width=width, color=sys.stdout.isatty())


def _report(built: Built, out: Path, target: ManifestTarget) -> Report:
    from trtplug.document import from_own_json
    from trtplug.report.data import Report

    made = built.reports.get(target.target)
    if made is not None:
        return made
    return from_own_json(Report, (out / target.sm / "report.json").read_bytes())


def _show_failures(manifest: Manifest) -> None:
    for failure in manifest.failures:
        click.echo(f"error[{failure.code}]: {_harmless(failure.message)}", err=True)
        if failure.hint:
            click.echo(f"hint: {_harmless(failure.hint)}", err=True)


def _harmless(text: str) -> str:
    """Text of several lines, which may have lines of a builder's log."""
    return "\n".join(map(printable, text.split("\n")))


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
