"""The sidecar of a timing cache: what it is valid for, what is in it, what builds did with it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trtplug
from trtplug.engine.cache_accounting import CacheWord
from trtplug.engine.cache_identity import CacheIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtplug.backends.cache_api import CacheValue

SCHEMA = "trtplug.timing-cache/1"

_BUILDS_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTactic:
    """One key of the cache and its winner."""

    key: str
    tactic_hash: str
    time_ms: float | None
    """As the builder timed it; None where it gave no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBuild:
    """What one build did with the cache."""

    when: str
    """UTC, such as `2026-11-30T11:03:15.123456Z`."""
    tool_version: str
    model_sha256: str
    word: CacheWord
    keys_before: int
    keys_after: int
    hits: int | None
    """None where it is not known what the build asked for."""
    misses: int
    """Keys that the build timed anew."""
    changed: int
    """Keys whose winner it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """All that is known of one cache."""

    schema: str
    tool_version: str
    identity: CacheIdentity
    sha256: str
    bytes: int
    tactics: tuple[CachedTactic, ...]
    """In order of their keys."""
    builds: tuple[CacheBuild, ...]
    """The last 100, the newest last."""

    @property
    def last_used(self) -> str:
        """When a build used it last; empty where none did."""
        return self.builds[-1].when if self.builds else ""

    @property
    def winners(self) -> dict[str, str]:
        """Key -> tactic hash."""
        return {t.key: t.tactic_hash for t in self.tactics}


def make_sidecar(
    identity: CacheIdentity,
    blob: bytes,
    values: Mapping[str, CacheValue],
    builds: tuple[CacheBuild, ...],
) -> Sidecar:
    """The sidecar of a blob whose keys the builder read."""
    return Sidecar(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        identity=identity,
        sha256=hashlib.sha256(blob).hexdigest(),
        bytes=len(blob),
        tactics=tuple(
            CachedTactic(
                key=key,
                tactic_hash=values[key].tactic_hash,
                time_ms=values[key].time_ms if math.isfinite(values[key].time_ms) else None,
            )
            for key in sorted(values)
        ),
        builds=builds[-_BUILDS_KEPT:],
    )


def winners_of(values: Mapping[str, CacheValue]) -> dict[str, str]:
    """Key -> tactic hash."""
    return {key: value.tactic_hash for key, value in values.items()}
