"""What people do with the store of timing caches: list, verify, prune."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import CacheUnusableError, UsageError
from trtplug.store import as_output_error
from trtplug.timing.files import (
    CacheEntry,
    Flawed,
    Sidecar,
    read_entry,
    read_values,
    unexpected_files,
)
from trtplug.timing.identity import machine_differences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from trtplug.backends.cache_api import TimingCacheApi
    from trtplug.backends.gpu import Machine
    from trtplug.timing.store import TimingCacheStore

_log = logging.getLogger(__name__)


_SECONDS_A_DAY = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCache:
    """One entry of the store, whole or not."""

    entry_id: str
    sidecar: Sidecar | None
    """None where the entry is flawed."""
    problem: str
    """Why it would not be attached; empty where it is whole."""
    differs_here: tuple[str, ...]
    """Fields that differ from this machine, which therefore never attaches it."""


def list_caches(store: TimingCacheStore, machine: Machine) -> tuple[StoredCache, ...]:
    """Every entry, in order of its GPU and builder; all digests are checked."""
    found = (_stored(store, folder.name, machine) for folder in _folders(store))
    return tuple(sorted((s for s in found if s is not None), key=_order))


def _stored(store: TimingCacheStore, entry_id: str, machine: Machine) -> StoredCache | None:
    entry = read_entry(store.root / "entries" / entry_id, None)
    if entry is None:
        return None
    if isinstance(entry, Flawed):
        return StoredCache(entry_id=entry_id, sidecar=None, problem=str(entry), differs_here=())
    identity = entry.sidecar.identity
    return StoredCache(
        entry_id=entry_id,
        sidecar=entry.sidecar,
        problem="" if entry_id == identity.entry_id else "foreign: it lies where another belongs",
        differs_here=tuple(map(str, machine_differences(identity, machine))),
    )


def _order(stored: StoredCache) -> tuple[str, ...]:
    if stored.sidecar is None:
        return ("",)
    identity = stored.sidecar.identity
    return (identity.gpu, identity.builder, stored.entry_id)


def _folders(store: TimingCacheStore) -> list[Path]:
    entries = store.root / "entries"
    return sorted(f for f in entries.iterdir() if f.is_dir()) if entries.is_dir() else []


def quarantined_names(store: TimingCacheStore) -> tuple[str, ...]:
    """What was rejected and kept, by name."""
    away = store.root / "set-aside"
    return tuple(sorted(f.name for f in away.iterdir())) if away.is_dir() else ()


def find_cache(store: TimingCacheStore, name: str) -> CacheEntry:
    """The entry of an ID, or of the first digits of one.

    Raises:
        UsageError: there is none, or several.
        CacheUnusableError: it is flawed.
    """
    found = [f for f in _folders(store) if f.name.startswith(name) and name]
    if len(found) != 1:
        problem = f"{len(found)} timing caches have an ID that starts with {name!r}"
        raise UsageError(problem, "`trtplug cache list` shows the IDs")
    entry = read_entry(found[0], None)
    if isinstance(entry, CacheEntry):
        return entry
    raise CacheUnusableError(path=str(found[0]), problem=str(entry or "it is empty"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was removed, or would be."""

    entries: tuple[str, ...]
    quarantined: tuple[str, ...]
    leftovers: tuple[str, ...]
    """Parts and blobs that killed processes left."""
    bytes: int


def prune_caches(
    store: TimingCacheStore,
    machine: Machine,
    *,
    unused_days: float | None,
    foreign: bool,
    dry_run: bool,
) -> Pruned:
    """Removes what was quarantined and what killed processes left, and entries as asked for.

    Args:
        store: to prune.
        machine: the local one.
        unused_days: entries that no build used for so long go; None: none goes for that.
        foreign: whether entries go that this machine never attaches.
        dry_run: whether all stays.

    Raises:
        OutputError: the store cannot be written.
    """
    gone: list[tuple[Path, int]] = []
    left: list[tuple[Path, int]] = []
    for folder in _folders(store):
        with contextlib.nullcontext() if dry_run else store.locked(folder.name):
            stored = _stored(store, folder.name, machine)
            removed = stored is not None and (
                _is_unused(stored.sidecar, unused_days) or (foreign and bool(stored.differs_here))
            )
            paths = [folder] if removed else list(_leftovers(folder))
            (gone if removed else left).extend((p, _size(p)) for p in paths)
            _remove(() if dry_run else paths)
    aside = [(store.root / "set-aside" / name) for name in quarantined_names(store)]
    aside_bytes = sum(map(_size, aside))
    _remove(() if dry_run else aside)
    return Pruned(
        entries=tuple(path.name for path, _ in gone),
        quarantined=tuple(path.name for path in aside),
        leftovers=tuple(path.relative_to(store.root).as_posix() for path, _ in left),
        bytes=aside_bytes + sum(size for _, size in (*gone, *left)),
    )


def _is_unused(sidecar: Sidecar | None, unused_days: float | None) -> bool:
    if sidecar is None or unused_days is None:
        return False
    try:
        used = datetime.datetime.fromisoformat(sidecar.last_used.replace("Z", "+00:00"))
        age = datetime.datetime.now(datetime.timezone.utc) - used
    except (ValueError, TypeError):
        _log.debug("%s: no build is recorded", sidecar.identity.entry_id)
        return False  # no build is recorded: it was imported, and may yet be used
    return age.total_seconds() >= unused_days * _SECONDS_A_DAY


def _leftovers(folder: Path) -> Iterator[Path]:
    entry = read_entry(folder, None)
    if isinstance(entry, CacheEntry):
        yield from unexpected_files(folder, f"{entry.sidecar.sha256}.cache")
    elif entry is None:
        yield from sorted(folder.iterdir())


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(f.stat().st_size for f in files)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with as_output_error(path):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def verify_caches(
    store: TimingCacheStore, machine: Machine, api: TimingCacheApi | None
) -> tuple[StoredCache, ...]:
    """As `list_caches`; with an API, TensorRT also reads those that are for this machine."""
    return tuple(_verified(store, stored, api) for stored in list_caches(store, machine))


def _verified(
    store: TimingCacheStore, stored: StoredCache, api: TimingCacheApi | None
) -> StoredCache:
    if api is None or stored.sidecar is None or stored.problem or stored.differs_here:
        return stored
    entry = read_entry(store.folder(stored.sidecar.identity), None)
    values = read_values(entry, api) if isinstance(entry, CacheEntry) else entry
    if values is None or isinstance(values, Flawed):
        return dataclasses.replace(stored, problem=str(values or "it was removed meanwhile"))
    return stored
