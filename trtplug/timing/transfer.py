"""Single timing caches as files: exported, imported, merged; the sidecar goes with each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.document import to_json
from trtplug.errors import CacheMismatchError, CacheUnusableError
from trtplug.files import write_whole
from trtplug.store import as_output_error
from trtplug.timing.files import (
    CACHE,
    CacheEntry,
    Flawed,
    Sidecar,
    make_sidecar,
    read_entry,
    read_pair,
    read_values,
    write_entry,
)
from trtplug.timing.identity import CacheIdentity, identity_differences, machine_differences
from trtplug.timing.store import TimingCacheStore, combined, unpublished

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trtplug.backends.cache_api import TimingCacheApi
    from trtplug.backends.gpu import Machine
    from trtplug.timing.store import Attached, CacheOutcome


def sidecar_of(file: Path) -> Path:
    """Where the sidecar of an exported cache lies."""
    return file.with_name(file.name + ".json")


def read_cache(file: Path) -> CacheEntry:
    """An exported cache, checked against its sidecar.

    Raises:
        CacheUnusableError: either is missing or damaged, or the two do not belong together.
    """
    if not file.exists():
        raise CacheUnusableError(path=str(file), problem="no such file")
    found = read_pair(sidecar_of(file), file, None) if not file.is_dir() else None
    if isinstance(found, CacheEntry):
        return found
    raise CacheUnusableError(path=str(file), problem=str(found or "it is a folder"))


def write_cache(file: Path, entry: CacheEntry) -> None:
    """Writes a cache and its sidecar.

    Raises:
        CacheMismatchError: a cache of another identity is there.
        CacheUnusableError: something that is no cache of ours is there.
        OutputError: it cannot be written.
    """
    if file.exists() or sidecar_of(file).exists():
        there = read_cache(file)
        _refuse_others(file, there, "what would be written", entry.sidecar.identity)
    with as_output_error(file):
        write_whole(file, entry.blob)
        write_whole(sidecar_of(file), to_json(entry.sidecar).encode())


def import_cache(
    store: TimingCacheStore,
    file: Path,
    machine: Machine | None,
    api: Callable[[], TimingCacheApi],
) -> Sidecar:
    """Puts an exported cache into the store; merges it where the store has such an entry.

    Args:
        store: to put it into.
        file: the cache; its sidecar lies beside it.
        machine: that it must be for; None to take it for any.
        api: the builder's own operations, asked for only where two caches must be merged.

    Raises:
        CacheUnusableError: it is damaged, or cannot be merged.
        CacheMismatchError: it is for another machine.
        BackendMissingError: it must be merged, and TensorRT is not here.
        OutputError: the store cannot be written.
    """
    entry = read_cache(file)
    identity = entry.sidecar.identity
    if machine is not None and (differ := machine_differences(identity, machine)):
        raise CacheMismatchError(
            path=str(file),
            wanted="this machine",
            differences=tuple(map(str, differ)),
            advice="--any-machine stores it all the same; it is attached only where all is equal",
        )
    with store.locked(identity.entry_id):
        there = read_entry(store.folder(identity), identity)
        if isinstance(there, Flawed):
            store.quarantine(identity.entry_id, there)
        if isinstance(there, CacheEntry):
            if there.sidecar.sha256 == entry.sidecar.sha256:
                return there.sidecar
            entry = _merged(api(), there, entry, str(file))
        write_entry(store.folder(identity), entry)
    return entry.sidecar


def merge_caches(files: Sequence[Path], api: TimingCacheApi) -> CacheEntry:
    """Exported caches of one identity as one; an earlier file's winners stay.

    Raises:
        CacheUnusableError: one is damaged, or TensorRT does not combine it.
        CacheMismatchError: their identities differ.
    """
    entries = [read_cache(file) for file in files]
    whole = entries[0]
    for file, entry in zip(files[1:], entries[1:], strict=True):
        _refuse_others(file, entry, str(files[0]), whole.sidecar.identity)
        whole = _merged(api, whole, entry, str(file))
    return whole


def _merged(api: TimingCacheApi, base: CacheEntry, other: CacheEntry, path: str) -> CacheEntry:
    for entry in (base, other):
        values = read_values(entry, api)
        if isinstance(values, Flawed):
            raise CacheUnusableError(path=path, problem=values.detail)
    keys = base.sidecar.winners.keys() | other.sidecar.winners.keys()
    both = combined(api, base.blob, other.blob, keys)
    if both is None:
        raise CacheUnusableError(path=path, problem="TensorRT does not combine it with the other")
    builds = sorted((*base.sidecar.builds, *other.sidecar.builds), key=lambda b: b.when)
    sidecar = make_sidecar(
        base.sidecar.identity, both.blob, both.values, tuple(dict.fromkeys(builds))
    )
    return CacheEntry(sidecar=sidecar, blob=both.blob)


def _refuse_others(file: Path, entry: CacheEntry, wanted: str, identity: CacheIdentity) -> None:
    if differ := identity_differences(identity, entry.sidecar.identity):
        raise CacheMismatchError(
            path=str(file), wanted=f"the same as {wanted}", differences=tuple(map(str, differ))
        )


def write_cache_for_child(attached: Attached, file: Path) -> Path | None:
    """Writes the cache that a build is to attach; None where it is to start with an empty one.

    Raises:
        OutputError: it cannot be written.
    """
    if attached.blob is None:
        return None
    with as_output_error(file):
        write_whole(file, attached.blob)
    return file


def publish_cache(
    store: TimingCacheStore | None,
    attached: Attached,
    api: TimingCacheApi,
    folder: Path,
    *,
    model_sha256: str,
    bypass_reason: str = "",
) -> CacheOutcome | None:
    """Publishes the cache that a build left in its folder, and writes the sidecar beside it.

    A cache that TensorRT does not read back is taken away: nothing unchecked ships.

    Args:
        store: to publish to; None for a cache that no other build is to have.
        attached: what the build began with.
        api: the builder's own operations.
        folder: of the build.
        model_sha256: of the model.
        bypass_reason: where there is no store, why.

    Returns:
        What the build did; None where it left no cache.

    Raises:
        OutputError: store or folder cannot be written.
    """
    file = folder / CACHE
    if not file.is_file():
        return None
    made = file.read_bytes()
    # What the build asked for is not known: the log does not list hits.
    outcome = (
        store.publish(attached, api, made, model_sha256=model_sha256)
        if store is not None
        else unpublished(attached, api, made, bypass_reason)
    )
    values = api.read(made)
    with as_output_error(folder):
        if values is None:
            file.unlink()
            return outcome
        sidecar = make_sidecar(attached.identity, made, values, ())
        write_whole(sidecar_of(file), to_json(sidecar).encode())
    return outcome
