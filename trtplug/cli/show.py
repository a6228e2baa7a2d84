"""Results on stdout: plans, bundles, reports."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format
from trtplug.document import to_json

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.build.outcomes import Built
    from trtplug.bundle.manifest import Manifest, ManifestTarget
    from trtplug.plan import Plan, PlannedSite
    from trtplug.report.data import Report


def plan_text(plan: Plan) -> str:
    """A plan for people."""
    lines = [
        f"model      {plan.model_file}  sha256 {plan.model_sha256[:16]}",
        f"builder    {plan.backend} {plan.backend_version}",
        f"shapes     {', '.join(plan.shapes) or 'as in the model'}",
        f"precision  {plan.precision}",
        f"flags      {', '.join(f'{k}={v}' for k, v in plan.flags.items())}",
        f"out        {plan.out}",
        "",
    ]
    for target in plan.targets:
        what = "build" if target.supported else "cannot be built by this backend"
        what = "take from the store" if target.in_store else what
        lines.append(f"{target.target}  {what}  (serves {', '.join(target.gpus) or 'no profile'})")
        lines += map(_site_line, target.sites or ())
    return "\n".join(lines) + "\n"


def _site_line(site: PlannedSite) -> str:
    from trtplug.report.words import visible

    tactics = f" {', '.join(site.tactics)}" if site.tactics else ""
    return f"  {site.choice}  {visible(site.site)}{tactics}  ({visible(site.reason)})"


def show_bundle(built: Built, out: Path, format: Format) -> None:
    """What a build made: the manifest as JSON, or reports and a summary for people."""
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
    """A report for the terminal at hand."""
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
        click.echo(f"error[{failure.code}]: {failure.message}", err=True)
        if failure.hint:
            click.echo(f"hint: {failure.hint}", err=True)


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
