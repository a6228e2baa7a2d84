"""What `trtplug cache` prints: timing caches as text, JSON or Markdown."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import TYPE_CHECKING

from trtplug.cli.grid import render_grid
from trtplug.cli.options import Format
from trtplug.cli.table import render_rows
from trtplug.report.units import UNKNOWN, format_bytes, format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.engine.cache_admin import Pruned, StoredCache
    from trtplug.engine.cache_sidecar import Sidecar

SCHEMA = "trtplug.timing-caches/1"

_HEAD = (
    "ID", "GPU", "SM", "driver", "CUDA", "TensorRT", "flags", "keys", "size", "builds", "hits",
    "misses", "last used", "here",
)  # fmt: skip
_FIGURES = ("keys", "size", "builds", "hits", "misses")


def render_entries(entries: Sequence[StoredCache], aside: Sequence[str], form: Format) -> str:
    """Every entry, and what was set aside."""
    if form is Format.JSON:
        return _json(SCHEMA, {"entries": list(map(_record, entries)), "set_aside": list(aside)})
    if not entries and not aside:
        return "no timing caches are stored\n"
    table = render_grid(_HEAD, [_row(e) for e in entries], form, _FIGURES) if entries else ""
    lines = [f"{name} was set aside; `trtplug cache prune` removes it\n" for name in aside]
    return "\n".join(part for part in (table, "".join(lines)) if part)


def render_verdict(entries: Sequence[StoredCache], form: Format) -> str:
    """Which entries would be attached."""
    if form is Format.JSON:
        whole = not any(e.problem for e in entries)
        return _json(SCHEMA, {"entries": list(map(_record, entries)), "intact": whole})
    rows = [(e.entry_id, e.problem or "whole") for e in entries]
    rows.append(("entries", f"{len(entries)}, {sum(bool(e.problem) for e in entries)} flawed"))
    return render_rows(rows, form)


def render_pruned(pruned: Pruned, dry_run: bool, form: Format) -> str:
    """What was removed."""
    if form is Format.JSON:
        record = dataclasses.asdict(pruned) | {"dry_run": dry_run}
        return _json("trtplug.timing-caches-pruned/1", record)
    does = "would remove" if dry_run else "removed"
    gone = (*pruned.entries, *pruned.set_aside, *pruned.leftovers)
    rows = [(does, name) for name in gone]
    rows.append(("total", f"{len(gone)}, {format_bytes(pruned.bytes)}"))
    return render_rows(rows, form)


def render_moved(what: str, sidecar: Sidecar, where: str, form: Format) -> str:
    """One cache that was exported, imported or merged."""
    if form is Format.JSON:
        record = {"done": what, "where": where, "sidecar": _sidecar(sidecar)}
        return _json("trtplug.timing-cache-moved/1", record)
    identity = sidecar.identity
    return render_rows(
        [
            (what, where),
            ("GPU", f"{identity.gpu} ({identity.sm})"),
            ("driver", f"{identity.driver}, CUDA {identity.cuda}"),
            ("TensorRT", identity.builder),
            ("flags", _flags(identity.flags)),
            ("keys", format_count(len(sidecar.tactics))),
            ("sha256", sidecar.sha256),
        ],
        form,
    )


def _row(stored: StoredCache) -> tuple[str, ...]:
    sidecar = stored.sidecar
    if sidecar is None:
        return (stored.entry_id, *["?"] * (len(_HEAD) - 2), stored.problem)
    identity, builds = sidecar.identity, sidecar.builds
    here = stored.problem or (stored.differs_here[0] if stored.differs_here else "attached")
    return (
        stored.entry_id,
        identity.gpu,
        identity.sm,
        identity.driver,
        identity.cuda,
        identity.builder,
        _flags(identity.flags),
        format_count(len(sidecar.tactics)),
        format_bytes(sidecar.bytes),
        _builds(sidecar),
        _hits(sidecar),
        format_count(sum(b.misses for b in builds)),
        sidecar.last_used.partition(".")[0] or "never",
        here,
    )


def _builds(sidecar: Sidecar) -> str:
    """Such as `3: 1 cold, 2 hit`."""
    words = Counter(build.word for build in sidecar.builds)
    each = ", ".join(f"{count:,} {word}" for word, count in sorted(words.items()))
    return f"{len(sidecar.builds):,}: {each}" if each else "0"


def _hits(sidecar: Sidecar) -> str:
    """Of the builds whose hits are known; `+` where there are others, unknown where those are all.

    A build that began with an empty cache has none for certain.
    """
    known = [b.hits for b in sidecar.builds if b.hits is not None]
    if len(known) == len(sidecar.builds):
        return format_count(sum(known))
    return f"{format_count(sum(known))}+" if sum(known) else UNKNOWN


def _flags(flags: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in flags.items()) or "none"


def _record(stored: StoredCache) -> dict[str, object]:
    return {
        "id": stored.entry_id,
        "problem": stored.problem,
        "differs_here": list(stored.differs_here),
        "sidecar": _sidecar(stored.sidecar) if stored.sidecar else None,
    }


def _sidecar(sidecar: Sidecar) -> dict[str, object]:
    record = dataclasses.asdict(sidecar)
    # Thousands of keys say nothing in a list; `cache export` has them.
    return {k: v for k, v in record.items() if k != "tactics"} | {"keys": len(sidecar.tactics)}


def _json(schema: str, record: Mapping[str, object]) -> str:
    return json.dumps({"schema": schema, **record}, indent=2) + "\n"
