"""What a builder left in a target's folder, as data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.log import Listing, parse_inspector_json, parse_layer_text
from trtplug.engine.lock import CACHE, CACHE_FILES

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.backends.tactic_table import CandidateTable
    from trtplug.engine.cache_files import CacheEntry


def take_listing(place: Path) -> Listing | None:
    """The layers, from the builder's log or from the engine inspector; that file stays."""
    text, inspector = place / "layers.txt", place / "inspector.json"
    if text.is_file():
        listing = parse_layer_text(text.read_text(encoding="utf-8"))
        text.unlink()
        return listing
    if inspector.is_file():
        try:
            return parse_inspector_json(inspector.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            return None  # the report says that there is none
    return None


def read_shipped_cache(place: Path) -> CacheEntry | None:
    """The timing cache that ships beside the engine, where there is one with its sidecar.

    Raises:
        CacheUnusableError: it is not what its sidecar tells of.
    """
    if not all((place / name).is_file() for name in CACHE_FILES):
        return None
    from trtplug.engine.cache_transfer import read_cache

    return read_cache(place / CACHE)


def read_tables(log: Path) -> tuple[CandidateTable, ...]:
    """The candidate tables in a builder's log; most logs have none, and are not parsed."""
    data = log.read_bytes()
    if b"Autotuning op " not in data:
        return ()
    from trtplug.backends.tactic_log import parse_tactic_text

    return parse_tactic_text(data.decode("utf-8", "replace")).tables
