"""What trtplug asks of a builder's timing caches; the adapter of the builder answers.

Caches are opaque bytes here, as the builder serializes them, so that an adapter may do each call in
a process of its own: a hostile file can crash the library that reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheValue:
    """What a timing cache holds for one key: the winner alone."""

    tactic_hash: str
    """`0x` and lower-case hexadecimal digits."""
    time_ms: float
    """As the builder timed it, or as it was edited."""


class TimingCacheApi(Protocol):
    """A builder's own operations on serialized timing caches.

    None is the builder's refusal: corrupt, of another version, of another device. An adapter never
    passes `ignore_mismatch=True`, for reading nor for combining. Nothing here raises for bytes of
    any kind; a builder that cannot be loaded, or does not answer, is a BackendMissingError.
    """

    def read(self, blob: bytes) -> Mapping[str, CacheValue] | None:
        """All keys (`0x` and 32 hexadecimal digits) with their values."""

    def combine(self, base: bytes, other: bytes) -> bytes | None:
        """Both in one; where both hold a key, `base` keeps its value."""

    def update(self, blob: bytes, values: Mapping[str, CacheValue]) -> bytes | None:
        """The cache with other winners for keys that it has; None too where it lacks a key."""


@runtime_checkable
class CachingBackend(Protocol):
    """A backend that has timing caches; its `capabilities().timing_cache` says so too."""

    def version(self) -> str | None:
        """As of every backend."""

    def timing_caches(self) -> TimingCacheApi:
        """The builder's own operations; loading it may take a while."""
