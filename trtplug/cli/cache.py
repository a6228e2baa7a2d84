"""`trtplug cache`: the stored timing caches, and `cache inspect` for any cache."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    Format,
    Group,
    NumberRange,
    echo,
    epilog,
    format_option,
    lines_of,
    path,
)
from trtplug.errors import DONE, GATE_FAILED, UsageError
from trtplug.report.tables import render_grid, render_json, render_rows
from trtplug.report.words import UNKNOWN, format_bytes, format_count, format_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trtplug.timing.admin import Pruned, StoredCache
    from trtplug.timing.blob import BlobEntry, CacheBlob
    from trtplug.timing.files import Sidecar
    from trtplug.timing.store import TimingCacheStore


SCHEMA = "trtplug.timing-caches/1"

_HEAD = (
    "ID", "GPU", "SM", "driver", "CUDA", "TensorRT", "flags", "keys", "size", "builds", "hits",
    "misses", "last used", "here",
)  # fmt: skip
_FIGURES = ("keys", "size", "builds", "hits", "misses")
_SLOWEST = 10


def render_entries(entries: Sequence[StoredCache], aside: Sequence[str], form: Format) -> str:
    """All entries, and the quarantined caches."""
    if form is Format.JSON:
        return render_json(
            SCHEMA, {"entries": list(map(_record, entries)), "set_aside": list(aside)}
        )
    if not entries and not aside:
        return "no timing caches are stored\n"
    table = render_grid(_HEAD, [_row(e) for e in entries], form, _FIGURES) if entries else ""
    lines = (f"{name} was quarantined; `trtplug cache prune` removes it" for name in aside)
    return "\n".join(part for part in (table, lines_of(lines, form)) if part)


def render_verdict(entries: Sequence[StoredCache], form: Format) -> str:
    """Which entries a build would use."""
    if form is Format.JSON:
        intact = not any(e.problem for e in entries)
        return render_json(SCHEMA, {"entries": list(map(_record, entries)), "intact": intact})
    rows = [(e.entry_id, e.problem or "intact") for e in entries]
    rows.append(("entries", f"{len(entries)}, {sum(bool(e.problem) for e in entries)} damaged"))
    return render_rows(rows, form)


def render_pruned(pruned: Pruned, dry_run: bool, form: Format) -> str:
    """What was removed."""
    if form is Format.JSON:
        record = dataclasses.asdict(pruned) | {"dry_run": dry_run}
        record["set_aside"] = record.pop("quarantined")  # its name in version 1 of the document
        return render_json("trtplug.timing-caches-pruned/1", record)
    does = "would remove" if dry_run else "removed"
    gone = (*pruned.entries, *pruned.quarantined, *pruned.leftovers)
    rows = [(does, name) for name in gone]
    rows.append(("total", f"{len(gone)}, {format_bytes(pruned.bytes)}"))
    return render_rows(rows, form)


def render_moved(what: str, sidecar: Sidecar, where: str, form: Format) -> str:
    """One cache that was exported, imported or merged."""
    if form is Format.JSON:
        record = {"done": what, "where": where, "sidecar": _sidecar(sidecar)}
        return render_json("trtplug.timing-cache-moved/1", record)
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


def render_blob(blob: CacheBlob, file: str, form: Format) -> str:
    """What a cache's own bytes say; the text shows the slowest entries, JSON all of them."""
    classic, compiler = len(blob.of("classic")), len(blob.of("compiler"))
    if form is Format.JSON:
        record = dataclasses.asdict(blob) | {
            "file": file,
            "classic": classic,
            "compiler": compiler,
            "runners": blob.runners,
        }
        return render_json("trtplug.timing-cache-bytes/1", record)
    rows = [
        ("timing cache", file),
        ("GPU", blob.uuid),
        ("TensorRT", f"commit {blob.commit}, layout {blob.version}"),
        ("entries", f"{len(blob.entries):,}: {classic:,} classic, {compiler:,} of the compiler"),
        *((f"  {name}", format_count(count)) for name, count in blob.runners.items()),
        ("compiled code", format_bytes(blob.compiled_bytes)),
        *(("warning", warning) for warning in blob.warnings),
    ]
    timed = [entry for entry in blob.entries if entry.time_ms is not None]
    slowest = sorted(timed, key=lambda entry: -(entry.time_ms or 0))[:_SLOWEST]
    head = ("slowest us", "runner", "tactic", "key")
    grid = render_grid(head, list(map(_blob_row, slowest)), form, ("slowest us",))
    return render_rows(rows, form) + (f"\n{grid}" if slowest else "")


def _blob_row(entry: BlobEntry) -> tuple[str, ...]:
    time_us = None if entry.time_ms is None else entry.time_ms * 1000
    return (format_us(time_us), entry.runner or entry.tuner, entry.tactic_hash, entry.key)


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
    """Hits of the builds that know them; `+` if others do not, unknown if none does.

    A build that started with an empty cache has none.
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
    # There may be thousands; `cache export` writes them.
    return {k: v for k, v in record.items() if k != "tactics"} | {"keys": len(sidecar.tactics)}


@click.group(
    cls=Group,
    epilog=epilog("trtplug cache list", "trtplug cache prune --dry-run", statuses=(0, 1, 2, 4)),
)
def cache() -> None:
    """List, verify, move and merge TensorRT's timing caches.

    The store has one entry per GPU, driver, TensorRT build and set of flags.
    """


@cache.command("list", epilog=epilog("trtplug cache list --format json"))
@format_option
def list_entries(format: Format) -> int:
    """List the stored timing caches with keys, hits and misses."""
    from trtplug.backends.find import read_machine
    from trtplug.timing.admin import list_caches, quarantined_names

    store = _store()
    entries = list_caches(store, read_machine())
    echo(render_entries(entries, quarantined_names(store), format))
    return DONE


@cache.command(
    "verify",
    epilog=epilog(
        "trtplug cache verify --load", statuses=(0, 1, 2, 4), failed="an entry cannot be used"
    ),
)
@click.option("--load", is_flag=True, help="Also load the entries for this machine in TensorRT.")
@format_option
def verify_entries(load: bool, format: Format) -> int:
    """Compare each stored timing cache with its sidecar."""
    from trtplug.backends.find import read_machine, timing_cache_api
    from trtplug.timing.admin import verify_caches

    entries = verify_caches(_store(), read_machine(), timing_cache_api() if load else None)
    echo(render_verdict(entries, format))
    return GATE_FAILED if any(e.problem for e in entries) else DONE


@cache.command("prune", epilog=epilog("trtplug cache prune --unused-days 90 --dry-run"))
@click.option(
    "--unused-days",
    type=NumberRange(0),
    metavar="DAYS",
    help="Also remove entries that no build has used for this many days.",
)
@click.option("--foreign", is_flag=True, help="Also remove entries for other machines.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@format_option
def prune(unused_days: float | None, foreign: bool, dry_run: bool, format: Format) -> int:
    """Remove rejected timing caches and leftovers of killed processes."""
    from trtplug.backends.find import read_machine
    from trtplug.timing.admin import prune_caches

    pruned = prune_caches(
        _store(), read_machine(), unused_days=unused_days, foreign=foreign, dry_run=dry_run
    )
    echo(render_pruned(pruned, dry_run, format))
    return DONE


@cache.command(
    "merge", epilog=epilog("trtplug cache merge a.cache b.cache --out ab.cache", statuses=(0, 2, 4))
)
@click.argument("files", type=path, nargs=-1)
@click.option("--out", "-o", type=path, required=True, metavar="FILE", help="The merged cache.")
@format_option
def merge(files: tuple[Path, ...], out: Path, format: Format) -> int:
    """Merge exported timing caches of one GPU and TensorRT build.

    If two files have the same key, the entry of the first one is kept.
    """
    from trtplug.backends.find import timing_cache_api
    from trtplug.timing.transfer import merge_caches, write_cache

    if len(files) < 2:
        raise UsageError("nothing to merge", "give two or more caches")
    merged = merge_caches(files, timing_cache_api())
    write_cache(out, merged)
    echo(render_moved("merged", merged.sidecar, str(out), format))
    return DONE


@cache.command("export", epilog=epilog("trtplug cache export 3f2a h100.cache"))
@click.argument("entry")
@click.argument("out", type=path)
@format_option
def export(entry: str, out: Path, format: Format) -> int:
    """Copy a timing cache and its sidecar out of the store.

    ENTRY is an ID of `trtplug cache list` or the start of one. The sidecar is written to OUT.json.
    """
    from trtplug.timing.admin import find_cache
    from trtplug.timing.transfer import write_cache

    found = find_cache(_store(), entry)
    write_cache(out, found)
    echo(render_moved("exported", found.sidecar, str(out), format))
    return DONE


@cache.command("import", epilog=epilog("trtplug cache import h100.cache", statuses=(0, 2, 4)))
@click.argument("file", type=path)
@click.option("--any-machine", is_flag=True, help="Also accept a cache of another machine.")
@format_option
def import_file(file: Path, any_machine: bool, format: Format) -> int:
    """Add an exported timing cache to the store.

    FILE.json must be its sidecar. A cache of another machine is refused.
    """
    from trtplug.backends.find import read_machine, timing_cache_api
    from trtplug.timing.transfer import import_cache

    machine = None if any_machine else read_machine()
    sidecar = import_cache(_store(), file, machine, timing_cache_api)
    where = sidecar.identity.entry_id
    echo(render_moved("imported", sidecar, where, format))
    return DONE


@cache.command(
    "inspect",
    epilog=epilog("trtplug cache inspect timing.cache", statuses=(0, 2)),
)
@click.argument("file", type=path)
@format_option
def inspect_file(file: Path, format: Format) -> int:
    """Show the GPU, TensorRT build and entries of a timing cache.

    FILE is any cache of TensorRT: trtexec's, ONNX Runtime's, or one of the store. It says which GPU
    and which build of TensorRT it is for, how many entries each runner has, and the slowest. It
    needs neither TensorRT nor a GPU.
    """
    from trtplug.timing.blob import read_blob_file

    echo(render_blob(read_blob_file(file), str(file), format))
    return DONE


def _store() -> TimingCacheStore:
    from trtplug.lock.policy import TIMING_CACHES
    from trtplug.settings import read_settings
    from trtplug.timing.store import TimingCacheStore

    return TimingCacheStore(root=read_settings().store / TIMING_CACHES)
