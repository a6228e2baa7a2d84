"""What `trtplug lock` prints: text, JSON or Markdown."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from trtplug.cli.grid import render_grid
from trtplug.cli.options import Format
from trtplug.cli.table import render_rows
from trtplug.document import to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.engine.cache_identity import Difference
    from trtplug.engine.lock import Lock, LockLayer, LockSite
    from trtplug.engine.lock_check import LockCheck
    from trtplug.engine.lock_diff import LayerChange, LockDiff

NONE = "-"


def render_checks(
    checks: Sequence[LockCheck], unqualified: Sequence[tuple[Difference, ...]], form: Format
) -> str:
    """How each lock compares with its bundle, and with this machine."""
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
        return _json("trtplug.lock-check/1", {"locks": records})
    rows: list[tuple[str, str]] = []
    for check, differ in pairs:
        rows.append((check.target, "as locked" if not check.problems else "differs from its lock"))
        rows += [("  differs", problem) for problem in check.problems]
        here = "; ".join(map(str, differ))
        rows.append(("  here", f"unqualified: {here}" if differ else "qualified"))
    return render_rows(rows or [("locks", "none")], form)


def render_diff(diff: LockDiff, form: Format) -> str:
    """All in which two locks differ."""
    if form is Format.JSON:
        record = dataclasses.asdict(diff) | {"differs": diff.differs}
        return _json("trtplug.lock-diff/1", record)
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
    mark = "### " if form is Format.MARKDOWN else ""
    texts = [
        f"{mark}{title}\n\n{render_grid(head, rows, form)}" for title, head, rows in parts if rows
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
        render_rows(_facts(lock), form),
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


def _facts(lock: Lock) -> list[tuple[str, str]]:
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


def _json(schema: str, record: dict[str, object]) -> str:
    return json.dumps({"schema": schema, **record}, indent=2) + "\n"
