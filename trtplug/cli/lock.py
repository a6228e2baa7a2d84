"""`trtplug lock verify|diff|show`: the recorded choices of a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, format_option, path
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.engine.lock import Lock

_TARGET = click.option("--target", help="Which of a bundle's targets, such as sm_89.")


@click.group()
def lock() -> None:
    """Show and compare locks: what was chosen for an engine.

    What went in, and the kernel of every layer and site. A FILE is a lock, or a bundle.
    """


@lock.command("verify")
@click.argument("bundle", type=path)
@click.option(
    "--here", is_flag=True, help="Fail too where this machine is not the one of the lock."
)
@format_option
def verify(bundle: Path, here: bool, format: Format) -> int:
    """Compare a bundle's locks with what it holds.

    With engines, manifest and timing caches; the status is 1 where one differs.
    """
    from trtplug.backends import find
    from trtplug.backends.machine import read_machine
    from trtplug.cli.lock_tables import render_checks
    from trtplug.engine.lock_check import qualify, verify_locks

    if not bundle.is_dir():
        raise UsageError(f"{bundle} is no folder", "give the folder that `trtplug build` made")
    checks = verify_locks(bundle)
    machine = read_machine()
    versions = {backend.name: backend.version() for backend in find.BACKENDS}
    unqualified = [qualify(c.lock, machine, versions.get(c.lock.backend)) for c in checks]
    click.echo(render_checks(checks, unqualified, format), nl=False)
    failed = any(c.problems for c in checks) or (here and any(unqualified))
    return GATE_FAILED if failed else DONE


@lock.command("diff")
@click.argument("before", type=path)
@click.argument("after", type=path)
@_TARGET
@format_option
def diff(before: Path, after: Path, target: str | None, format: Format) -> int:
    """Compare two locks by layer and by ONNX node.

    The status is 1 where inputs or choices differ.
    """
    from trtplug.cli.lock_tables import render_diff
    from trtplug.engine.lock_diff import diff_locks

    found = diff_locks(_lock(before, target), _lock(after, target))
    click.echo(render_diff(found, format), nl=False)
    return GATE_FAILED if found.differs else DONE


@lock.command("show")
@click.argument("file", type=path)
@_TARGET
@format_option
def show(file: Path, target: str | None, format: Format) -> int:
    """Show a lock.

    Inputs, and every layer with cache key, tactic, kernel and ONNX nodes.
    """
    from trtplug.cli.lock_tables import render_lock

    click.echo(render_lock(_lock(file, target), format), nl=False)
    return DONE


def _lock(file: Path, target: str | None) -> Lock:
    """The lock in a file, or the one of a target in a bundle.

    Raises:
        UsageError: the bundle has several targets, or not that one.
        DocumentError: it cannot be read.
    """
    from trtplug.engine.lock import LOCK, read_lock
    from trtplug.engine.manifest import read_manifest

    if not file.is_dir():
        return read_lock(file)
    targets = read_manifest(file).targets
    found = [t for t in targets if target is None or target in (t.target, t.sm, *t.gpus)]
    if len(found) != 1:
        names = ", ".join(t.sm for t in targets) or "none"
        raise UsageError(f"{file} has {len(found)} such targets", f"--target takes one of: {names}")
    return read_lock(file / found[0].sm / LOCK)
