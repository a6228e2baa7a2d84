"""A build's timing cache on its way between the store and the builder's process.

The parent lays the store's cache out for the child, which attaches it and leaves its own beside the
engine; the parent then publishes that one and gives it a sidecar, so that the pair ships.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.document import to_json
from trtplug.engine.cache_files import write_whole
from trtplug.engine.cache_sidecar import make_sidecar
from trtplug.engine.cache_transfer import sidecar_of
from trtplug.engine.lock import CACHE
from trtplug.engine.timing_cache import outcome_apart
from trtplug.scratch import as_output_error

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.backends.cache_api import TimingCacheApi
    from trtplug.engine.timing_cache import Attached, CacheOutcome, TimingCacheStore


def lay_out(attached: Attached, file: Path) -> Path | None:
    """Writes the cache that a build is to attach; None where it is to start with an empty one.

    Raises:
        OutputError: it cannot be written.
    """
    if attached.blob is None:
        return None
    with as_output_error(file):
        write_whole(file, attached.blob)
    return file


def take_in(
    store: TimingCacheStore | None,
    attached: Attached,
    api: TimingCacheApi,
    folder: Path,
    *,
    model_sha256: str,
    why_apart: str = "",
) -> CacheOutcome | None:
    """Publishes the cache that a build left in its folder, and writes the sidecar beside it.

    A cache that TensorRT does not read back is taken away: nothing unchecked ships.

    Args:
        store: to publish to; None for a cache that no other build is to have.
        attached: what the build began with.
        api: the builder's own operations.
        folder: of the build.
        model_sha256: of the model.
        why_apart: where there is no store, why.

    Returns:
        What the build did; None where it left no cache.

    Raises:
        OutputError: store or folder cannot be written.
    """
    file = folder / CACHE
    if not file.is_file():
        return None
    made = file.read_bytes()
    # What the build asked for is not known: of a hit the log tells nothing.
    outcome = (
        store.publish(attached, api, made, model_sha256=model_sha256)
        if store is not None
        else outcome_apart(attached, api, made, why_apart)
    )
    values = api.read(made)
    with as_output_error(folder):
        if values is None:
            file.unlink()
            return outcome
        sidecar = make_sidecar(attached.identity, made, values, ())
        write_whole(sidecar_of(file), to_json(sidecar).encode())
    return outcome
