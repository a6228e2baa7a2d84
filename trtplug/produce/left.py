"""Reads the files that a builder left in a target's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.log import Listing, parse_inspector_json, parse_layer_text
from trtplug.backends.tactic_table import CandidateTable, with_winner
from trtplug.engine.lock import CACHE, CACHE_FILES
from trtplug.offer.for_build import KERNEL_LOG

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.engine.cache_files import CacheEntry


FURTHER_FILES = ("inspector.json", KERNEL_LOG, *CACHE_FILES)
"""Files of a target that only some builders leave."""


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
    """The timing cache that ships beside the engine, where there is one with its sidecar."""
    if not all((place / name).is_file() for name in CACHE_FILES):
        return None
    from trtplug.engine.cache_transfer import read_cache

    return read_cache(place / CACHE)


def with_winners(
    earlier: tuple[CandidateTable, ...],
    logged: tuple[CandidateTable, ...],
    cached: CacheEntry | None,
) -> tuple[CandidateTable, ...]:
    """All tables, with the tactics that the timing cache holds; those logged count more."""
    latest = {table.key: table for table in (*earlier, *logged)}
    winners = cached.sidecar.winners if cached else {}
    return tuple(with_winner(t, winners.get(t.key, t.selected)) for t in latest.values())


def read_tables(log: Path) -> tuple[CandidateTable, ...]:
    """The candidate tables in a builder's log; most logs have none, and are not parsed."""
    data = log.read_bytes()
    if b"Autotuning op " not in data:
        return ()
    from trtplug.backends.tactic_log import parse_tactic_text

    return parse_tactic_text(data.decode("utf-8", "replace")).tables
