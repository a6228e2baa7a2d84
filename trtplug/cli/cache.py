"""`trtplug cache list|verify|prune|merge|export|import`: the store of timing caches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from trtplug.engine.timing_cache import TimingCacheStore

app = typer.Typer(
    name="cache",
    help="TensorRT's timing caches: one entry for each GPU, driver, TensorRT build and flags.",
    rich_markup_mode=None,
    add_completion=False,
)

_Form = Annotated[Format, typer.Option("--format", help="Form of the result on stdout.")]


@app.command("list")
def list_entries(form: _Form = Format.TEXT) -> int:
    """List the entries: what each is valid for, what is in it, hits and misses of its builds."""
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_entries
    from trtplug.engine.cache_admin import list_caches, set_aside_names

    store = _store()
    entries = list_caches(store, read_machine())
    typer.echo(render_entries(entries, set_aside_names(store), form), nl=False)
    return DONE


@app.command("verify")
def verify_entries(
    load: Annotated[
        bool, typer.Option("--load", help="Let TensorRT read those that are for this machine too.")
    ] = False,
    form: _Form = Format.TEXT,
) -> int:
    """Check every entry against its sidecar; status 1 where one would not be attached."""
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_verdict
    from trtplug.engine.cache_admin import verify_caches

    entries = verify_caches(_store(), read_machine(), timing_cache_api() if load else None)
    typer.echo(render_verdict(entries, form), nl=False)
    return GATE_FAILED if any(e.problem for e in entries) else DONE


@app.command("prune")
def prune(
    unused_days: Annotated[
        float | None,
        typer.Option(min=0, help="Remove entries that no build used for so many days too."),
    ] = None,
    foreign: Annotated[
        bool,
        typer.Option("--foreign", help="Remove entries that this machine never attaches too."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would go, and leave it.")
    ] = False,
    form: _Form = Format.TEXT,
) -> int:
    """Remove rejected caches that were set aside, and what killed processes left."""
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_pruned
    from trtplug.engine.cache_admin import prune_caches

    if unused_days is not None and not unused_days >= 0:
        raise UsageError(f"--unused-days {unused_days} is no number of days")
    pruned = prune_caches(
        _store(), read_machine(), unused_days=unused_days, foreign=foreign, dry_run=dry_run
    )
    typer.echo(render_pruned(pruned, dry_run, form), nl=False)
    return DONE


@app.command("merge")
def merge(
    files: Annotated[
        list[Path], typer.Argument(help="Exported caches; where two have a key, the first wins.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The merged cache.")],
    form: _Form = Format.TEXT,
) -> int:
    """Merge exported caches of one identity with TensorRT's own combine."""
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_transfer import merge_caches, write_cache

    if len(files) < 2:
        raise UsageError("one cache needs no merging", "give two or more")
    merged = merge_caches(files, timing_cache_api())
    write_cache(out, merged)
    typer.echo(render_moved("merged", merged.sidecar, str(out), form), nl=False)
    return DONE


@app.command("export")
def export(
    entry: Annotated[str, typer.Argument(help="An ID of `cache list`, or how it starts.")],
    out: Annotated[Path, typer.Argument(help="The file; its sidecar becomes FILE.json.")],
    form: _Form = Format.TEXT,
) -> int:
    """Copy an entry and its sidecar out of the store."""
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_admin import find_cache
    from trtplug.engine.cache_transfer import write_cache

    found = find_cache(_store(), entry)
    write_cache(out, found)
    typer.echo(render_moved("exported", found.sidecar, str(out), form), nl=False)
    return DONE


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="The cache; FILE.json beside it is its sidecar.")],
    any_machine: Annotated[
        bool,
        typer.Option("--any-machine", help="Store it even if this machine never attaches it."),
    ] = False,
    form: _Form = Format.TEXT,
) -> int:
    """Put an exported cache into the store; one for another machine is refused."""
    from trtplug.backends.cache_api import timing_cache_api
    from trtplug.backends.machine import read_machine
    from trtplug.cli.cache_tables import render_moved
    from trtplug.engine.cache_transfer import import_cache

    machine = None if any_machine else read_machine()
    sidecar = import_cache(_store(), file, machine, timing_cache_api)
    where = sidecar.identity.entry_id
    typer.echo(render_moved("imported", sidecar, where, form), nl=False)
    return DONE


def _store() -> TimingCacheStore:
    from trtplug.engine.timing_cache import TimingCacheStore
    from trtplug.settings import read_settings

    return TimingCacheStore(root=read_settings().store / "timing-caches")
