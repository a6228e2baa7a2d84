"""Reads each timing cache once: every look into one costs a process that loads TensorRT."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtplug.backends.cache_api import CacheValue, TimingCacheApi


class ReadOnce:
    """A `cache_api.TimingCacheApi` that remembers what it has read, for the life of one command."""

    def __init__(self, api: TimingCacheApi) -> None:
        self._api = api
        self._read: dict[str, Mapping[str, CacheValue] | None] = {}

    def read(self, blob: bytes) -> Mapping[str, CacheValue] | None:
        """All keys with their values."""
        digest = hashlib.sha256(blob).hexdigest()
        if digest not in self._read:
            self._read[digest] = self._api.read(blob)
        return self._read[digest]

    def combine(self, base: bytes, other: bytes) -> bytes | None:
        """Both in one; where both hold a key, `base` keeps its value."""
        return self._api.combine(base, other)

    def update(self, blob: bytes, values: Mapping[str, CacheValue]) -> bytes | None:
        """The cache with other winners for keys that it has; None too where it lacks a key."""
        return self._api.update(blob, values)
