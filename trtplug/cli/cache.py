"""`trtplug cache list|verify|prune|merge|export|import`: the store of timing caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import Format, NumberRange, format_option, path
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.engine.timing_cache import TimingCacheStore


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
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_entries
    from trtplug.engine.cache_admin import list_caches, set_aside_names

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
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_verdict
    from trtplug.engine.cache_admin import verify_caches

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
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_pruned
    from trtplug.engine.cache_admin import prune_caches

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
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_transfer import merge_caches, write_cache

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
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_admin import find_cache
    from trtplug.engine.cache_transfer import write_cache

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
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_transfer import import_cache

    machine = None if any_machine else read_machine()
    sidecar = import_cache(_store(), file, machine, timing_cache_api)
    where = sidecar.identity.entry_id
    click.echo(render_moved("imported", sidecar, where, format), nl=False)
    return DONE


def _store() -> TimingCacheStore:
    from trtplug.engine.timing_cache import TimingCacheStore
    from trtplug.passes.policy import TIMING_CACHES
    from trtplug.settings import read_settings

    return TimingCacheStore(root=read_settings().store / TIMING_CACHES)
