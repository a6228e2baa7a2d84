"""`trtplug cache`: the store of timing caches, and `cache inspect` for any cache."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, NumberRange, format_option, path
from trtplug.cli.tables import render_grid, render_rows
from trtplug.errors import DONE, GATE_FAILED, UsageError
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
        return _json("trtplug.timing-cache-bytes/1", record)
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


@click.group()
def cache() -> None:
    """Show and keep TensorRT's timing caches.

    One entry for each GPU, driver, TensorRT build and flags.
    """


@cache.command("list")
@format_option
def list_entries(format: Format) -> int:
    """List the entries.

    What each is valid for, what is in it, hits and misses of its builds.
    """
    from trtplug.backends.gpu import read_machine
    from trtplug.timing.admin import list_caches, set_aside_names

    store = _store()
    entries = list_caches(store, read_machine())
    click.echo(render_entries(entries, set_aside_names(store), format), nl=False)
    return DONE


@cache.command("verify")
@click.option("--load", is_flag=True, help="Let TensorRT read those that are for this machine too.")
@format_option
def verify_entries(load: bool, format: Format) -> int:
    """Check every entry against its sidecar.

    The status is 1 where one would not be attached.
    """
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.backends.gpu import read_machine
    from trtplug.timing.admin import verify_caches

    entries = verify_caches(_store(), read_machine(), timing_cache_api() if load else None)
    click.echo(render_verdict(entries, format), nl=False)
    return GATE_FAILED if any(e.problem for e in entries) else DONE


@cache.command("prune")
@click.option(
    "--unused-days",
    type=NumberRange(0),
    help="Remove entries that no build used for so many days too.",
)
@click.option(
    "--foreign", is_flag=True, help="Remove entries that this machine never attaches too."
)
@click.option("--dry-run", is_flag=True, help="Say what would go, and leave it.")
@format_option
def prune(unused_days: float | None, foreign: bool, dry_run: bool, format: Format) -> int:
    """Remove rejected caches that were set aside.

    And what killed processes left.
    """
    from trtplug.backends.gpu import read_machine
    from trtplug.timing.admin import prune_caches

    pruned = prune_caches(
        _store(), read_machine(), unused_days=unused_days, foreign=foreign, dry_run=dry_run
    )
    click.echo(render_pruned(pruned, dry_run, format), nl=False)
    return DONE


@cache.command("merge")
@click.argument("files", type=path, nargs=-1)
@click.option("--out", "-o", type=path, required=True, help="The merged cache.")
@format_option
def merge(files: tuple[Path, ...], out: Path, format: Format) -> int:
    """Merge exported caches of one identity with TensorRT's own combine.

    Where two have a key, the first wins.
    """
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.timing.transfer import merge_caches, write_cache

    if len(files) < 2:
        raise UsageError("one cache needs no merging", "give two or more")
    merged = merge_caches(files, timing_cache_api())
    write_cache(out, merged)
    click.echo(render_moved("merged", merged.sidecar, str(out), format), nl=False)
    return DONE


@cache.command("export")
@click.argument("entry")
@click.argument("out", type=path)
@format_option
def export(entry: str, out: Path, format: Format) -> int:
    """Copy an entry and its sidecar out of the store.

    ENTRY is an ID of `trtplug cache list`, or how it starts; the sidecar of OUT becomes OUT.json.
    """
    from trtplug.timing.admin import find_cache
    from trtplug.timing.transfer import write_cache

    found = find_cache(_store(), entry)
    write_cache(out, found)
    click.echo(render_moved("exported", found.sidecar, str(out), format), nl=False)
    return DONE


@cache.command("import")
@click.argument("file", type=path)
@click.option(
    "--any-machine", is_flag=True, help="Store it even if this machine never attaches it."
)
@format_option
def import_file(file: Path, any_machine: bool, format: Format) -> int:
    """Put an exported cache into the store.

    FILE.json beside it is its sidecar; a cache for another machine is refused.
    """
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.backends.gpu import read_machine
    from trtplug.timing.transfer import import_cache

    machine = None if any_machine else read_machine()
    sidecar = import_cache(_store(), file, machine, timing_cache_api)
    where = sidecar.identity.entry_id
    click.echo(render_moved("imported", sidecar, where, format), nl=False)
    return DONE


@cache.command("inspect")
@click.argument("file", type=path)
@format_option
def inspect_file(file: Path, format: Format) -> int:
    """Show whose a timing cache is and what it holds.

    FILE is any cache of TensorRT: trtexec's, ONNX Runtime's, or one of the store. It says which GPU
    and which build of TensorRT it is for, how many entries each runner has, and the slowest. It
    needs neither TensorRT nor a GPU.
    """
    from trtplug.timing.blob import read_blob_file

    click.echo(render_blob(read_blob_file(file), str(file), format), nl=False)
    return DONE


def _store() -> TimingCacheStore:
    from trtplug.lock.policy import TIMING_CACHES
    from trtplug.settings import read_settings
    from trtplug.timing.store import TimingCacheStore

    return TimingCacheStore(root=read_settings().store / TIMING_CACHES)
