"""`trtplug lock verify|diff|show`: the recorded choices of a build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from trtplug.engine.lock import Lock

app = typer.Typer(
    name="lock",
    help="The lock of each engine: what went in, and the kernel chosen for every layer and site.",
    rich_markup_mode=None,
    add_completion=False,
)

_Form = Annotated[Format, typer.Option("--format", help="Form of the result on stdout.")]
_Target = Annotated[
    str | None, typer.Option("--target", help="Which of a bundle's targets, such as sm_89.")
]
_File = Annotated[Path, typer.Argument(help="A lock, or a bundle.")]


@app.command("verify")
def verify(
    bundle: Annotated[Path, typer.Argument(help="The bundle.")],
    here: Annotated[
        bool,
        typer.Option("--here", help="Fail too where this machine is not the one of the lock."),
    ] = False,
    form: _Form = Format.TEXT,
) -> int:
    """Compare locks with engines, manifest and timing caches; status 1 where one differs."""
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
    typer.echo(render_checks(checks, unqualified, form), nl=False)
    failed = any(c.problems for c in checks) or (here and any(unqualified))
    return GATE_FAILED if failed else DONE


@app.command("diff")
def diff(
    before: _File,
    after: _File,
    target: _Target = None,
    form: _Form = Format.TEXT,
) -> int:
    """Compare two locks by layer and by ONNX node; status 1 where inputs or choices differ."""
    from trtplug.cli.lock_tables import render_diff
    from trtplug.engine.lock_diff import diff_locks

    found = diff_locks(_lock(before, target), _lock(after, target))
    typer.echo(render_diff(found, form), nl=False)
    return GATE_FAILED if found.differs else DONE


@app.command("show")
def show(file: _File, target: _Target = None, form: _Form = Format.TEXT) -> int:
    """Show a lock: inputs, and every layer with cache key, tactic, kernel and ONNX nodes."""
    from trtplug.cli.lock_tables import render_lock

    typer.echo(render_lock(_lock(file, target), form), nl=False)
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
