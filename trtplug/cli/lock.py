"""`trtplug lock verify|diff|show`: the recorded kernels and tactics of a build."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, Group, echo, epilog, format_option, path
from trtplug.document import to_json
from trtplug.errors import DONE, GATE_FAILED, UsageError
from trtplug.report.tables import render_grid, render_json, render_rows, render_titled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.lock.check import LockCheck
    from trtplug.lock.diff import LayerChange, LockDiff
    from trtplug.lock.lock import Lock, LockLayer, LockSite
    from trtplug.timing.identity import Difference


NONE = "-"


def render_checks(
    checks: Sequence[LockCheck], unqualified: Sequence[tuple[Difference, ...]], form: Format
) -> str:
    """Compares each lock with its bundle and with this machine."""
    pairs = list(zip(checks, unqualified, strict=True))
    if form is Format.JSON:
        records = [
            {
                "target": check.target,
                "intact": not check.problems,
                "problems": list(check.problems),
                "qualified_here": not differ,
                "differs_here": list(map(str, differ)),
            }
            for check, differ in pairs
        ]
        return render_json("trtplug.lock-check/1", {"locks": records})
    rows: list[tuple[str, str]] = []
    for check, differ in pairs:
        rows.append((check.target, "as locked" if not check.problems else "differs from its lock"))
        rows += [("  differs", problem) for problem in check.problems]
        here = "; ".join(map(str, differ))
        rows.append(("  here", f"unqualified: {here}" if differ else "qualified"))
    return render_rows(rows or [("locks", "none")], form)


def render_diff(diff: LockDiff, form: Format) -> str:
    """All differences of two locks."""
    if form is Format.JSON:
        record = dataclasses.asdict(diff) | {"differs": diff.differs}
        return render_json("trtplug.lock-diff/1", record)
    parts = (
        ("Inputs", ("field", "before", "after"), [_difference(d) for d in diff.inputs]),
        ("Layers", ("layer", "change", "before", "after", "ONNX nodes"), _layers(diff)),
        (
            "ONNX nodes",
            ("node", "before", "after"),
            [(n.node, n.before or NONE, n.after or NONE) for n in diff.nodes],
        ),
        ("Sites", ("site", "before", "after"), [_difference(d) for d in diff.sites]),
        ("Timing cache", ("key", "before", "after"), [_difference(d) for d in diff.tactics]),
        ("Outputs", ("field", "before", "after"), [_difference(d) for d in diff.outputs]),
    )
    texts = [
        render_titled(title, render_grid(head, rows, form), form)
        for title, head, rows in parts
        if rows
    ]
    verdict = "inputs or choices differ" if diff.differs else "the same inputs and choices"
    return "\n".join([*texts, verdict + "\n"])


def _difference(difference: Difference) -> tuple[str, str, str]:
    return difference.field, difference.wanted or NONE, difference.found or NONE


def _layers(diff: LockDiff) -> list[tuple[str, ...]]:
    return [row for change in diff.layers for row in _change(change)]


def _change(change: LayerChange) -> list[tuple[str, ...]]:
    nodes = " ".join(change.onnx_nodes) or NONE
    if change.kind in ("added", "removed"):
        return [(change.name, change.kind, NONE, NONE, nodes)]
    rows: list[tuple[str, ...]] = [
        (change.name, d.field, d.wanted or NONE, d.found or NONE, nodes) for d in change.differences
    ]
    if change.name != change.before_name:
        rows.append((change.name, "name", change.before_name, change.name, nodes))
    return rows


def render_lock(lock: Lock, form: Format) -> str:
    """One lock in full."""
    if form is Format.JSON:
        return to_json(lock)
    parts = [
        render_rows(lock_facts(lock), form),
        render_grid(
            ("layer", "type", "kernel", "tactic", "cache key", "ONNX nodes"),
            [_layer(layer) for layer in lock.layers],
            form,
        ),
    ]
    if lock.sites:
        head = ("site", "choice", "tactic", "PTX sha256", "offer sha256")
        parts.append(render_grid(head, [_site(s) for s in lock.sites], form))
    return "\n".join(parts)


def lock_facts(lock: Lock) -> list[tuple[str, str]]:
    """Rows of what was built, from what and how."""
    gpu, cache = lock.gpu, lock.timing_cache
    tactics = "none recorded" if lock.tactics is None else f"{len(lock.tactics)} recorded"
    return [
        ("lock of", lock.engine.file),
        ("model", f"{lock.model.file}  sha256 {lock.model.sha256}"),
        ("target", lock.target),
        ("builder", f"{lock.backend} {lock.backend_version} ({lock.library})"),
        ("GPU", f"{gpu.name}, driver {gpu.driver}, CUDA {gpu.cuda}" if gpu else "none needed"),
        ("shapes", ", ".join(lock.shapes)),
        ("precision", lock.precision),
        ("flags", ", ".join(f"{k}={v}" for k, v in lock.flags.items())),
        ("engine sha256", lock.engine.sha256),
        ("canonical sha256", lock.engine.canonical_sha256),
        ("timing cache", f"{cache.file}, {cache.keys} keys" if cache else "none"),
        ("tactics", tactics),
    ]


def _layer(layer: LockLayer) -> tuple[str, ...]:
    return (
        layer.name,
        layer.type,
        layer.kernel or layer.kernel_status.replace("_", " "),
        layer.tactic_hash or NONE,
        layer.cache_key or NONE,
        " ".join(layer.onnx_nodes) or NONE,
    )


def _site(site: LockSite) -> tuple[str, ...]:
    digests = (site.ptx_sha256 or NONE, site.kit_sha256 or NONE)
    return site.conv, site.choice, site.tactic or NONE, *digests


_TARGET = click.option(
    "--target", metavar="TARGET", help="Target of a bundle that has several, such as sm_89."
)


@click.group(
    cls=Group,
    epilog=epilog("trtplug lock verify out", "trtplug lock diff out tuned", statuses=(0, 1, 2)),
)
def lock() -> None:
    """Show, verify and compare locks.

    A lock records the inputs of a build and the kernel of each layer. FILE, BEFORE and AFTER are
    lock files or bundles.
    """


@lock.command(
    "verify",
    epilog=epilog(
        "trtplug lock verify out --here",
        statuses=(0, 1, 2),
        failed="a lock does not match its bundle, or with --here this machine",
    ),
)
@click.argument("bundle", type=path)
@click.option("--here", is_flag=True, help="Fail also if this machine does not match the lock.")
@format_option
def verify(bundle: Path, here: bool, format: Format) -> int:
    """Compare locks with engines, manifest and timing caches.

    BUNDLE is a folder that `trtplug build` made.
    """
    from trtplug.backends import find
    from trtplug.backends.find import read_machine
    from trtplug.lock.check import qualify, verify_locks

    if not bundle.is_dir():
        raise UsageError(f"{bundle} is not a folder", "give the folder that `trtplug build` made")
    checks = verify_locks(bundle)
    machine = read_machine()
    versions = {backend.name: backend.version() for backend in find.BACKENDS}
    unqualified = [qualify(c.lock, machine, versions.get(c.lock.backend)) for c in checks]
    echo(render_checks(checks, unqualified, format))
    failed = any(c.problems for c in checks) or (here and any(unqualified))
    return GATE_FAILED if failed else DONE


@lock.command(
    "diff",
    epilog=epilog(
        "trtplug lock diff out tuned",
        statuses=(0, 1, 2),
        failed="inputs, layers or tactics differ",
    ),
)
@click.argument("before", type=path)
@click.argument("after", type=path)
@_TARGET
@format_option
def diff(before: Path, after: Path, target: str | None, format: Format) -> int:
    """Compare two locks by layer and by ONNX node."""
    from trtplug.lock.diff import diff_locks

    found = diff_locks(_lock(before, target), _lock(after, target))
    echo(render_diff(found, format))
    return GATE_FAILED if found.differs else DONE


@lock.command("show", epilog=epilog("trtplug lock show out --target sm_90"))
@click.argument("file", type=path)
@_TARGET
@format_option
def show(file: Path, target: str | None, format: Format) -> int:
    """Show a lock: inputs, and kernel and tactic of each layer."""
    echo(render_lock(_lock(file, target), format))
    return DONE


def _lock(file: Path, target: str | None) -> Lock:
    """The lock in a file, or the one of a target in a bundle.

    Raises:
        UsageError: the bundle has several targets, or not that one.
        DocumentError: it cannot be read.
    """
    from trtplug.bundle.manifest import read_manifest
    from trtplug.lock.lock import LOCK, read_lock

    if not file.is_dir():
        return read_lock(file)
    targets = read_manifest(file).targets
    found = [t for t in targets if target is None or target in (t.target, t.sm, *t.gpus)]
    if len(found) != 1:
        names = ", ".join(t.sm for t in targets) or "none"
        raise UsageError(f"{file} has {len(found)} such targets", f"--target takes one of: {names}")
    return read_lock(file / found[0].sm / LOCK)
