"""A stand-in for TensorRT's timing caches: blobs of our own that follow the documented rules.

`NvInfer.h` of 11.1: `combine` wants the exact same version, and keeps the entry of the cache it is
called on where both have a key; `setTimingCache` without `ignore_mismatch` compares the header with
the device; `update` takes no key that the cache lacks.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.backends.cache_api import CacheValue
from trtplug.timing.identity import CacheIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"timing cache\n"


def key(number: int) -> str:
    return f"0x{number:032x}"


def value(number: int, time_ms: float = 0.5) -> CacheValue:
    return CacheValue(tactic_hash=f"0x{number:x}", time_ms=time_ms)


def values(*numbers: int) -> dict[str, CacheValue]:
    """Key n with tactic n."""
    return {key(n): value(n) for n in numbers}


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """The operations of one builder on one device."""

    device: str = "NVIDIA H200"
    version: str = "11.4.0.106"

    def make(self, entries: Mapping[str, CacheValue]) -> bytes:
        body = json.dumps(
            {
                "device": self.device,
                "version": self.version,
                "entries": {k: [v.tactic_hash, v.time_ms] for k, v in sorted(entries.items())},
            }
        ).encode()
        return _MAGIC + hashlib.sha256(body).hexdigest().encode() + body

    def read(self, blob: bytes) -> Mapping[str, CacheValue] | None:
        document = _document(blob)
        if document is None or document["device"] != self.device:
            return None
        if document["version"] != self.version:
            return None
        return {
            k: CacheValue(tactic_hash=tactic, time_ms=time_ms)
            for k, (tactic, time_ms) in document["entries"].items()
        }

    def combine(self, base: bytes, other: bytes) -> bytes | None:
        one, two = self.read(base), self.read(other)
        return None if one is None or two is None else self.make({**two, **one})

    def update(self, blob: bytes, values: Mapping[str, CacheValue]) -> bytes | None:
        held = self.read(blob)
        if held is None or not values.keys() <= held.keys():
            return None
        return self.make({**held, **values})


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetful(StandIn):
    """Combines, and loses what only the second cache had."""

    def combine(self, base: bytes, other: bytes) -> bytes | None:
        return base


def _document(blob: bytes) -> dict | None:
    if not blob.startswith(_MAGIC):
        return None
    digest, body = blob[len(_MAGIC) :][:64], blob[len(_MAGIC) + 64 :]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    return json.loads(body)


def identity(**fields) -> CacheIdentity:
    return CacheIdentity(
        **{
            "gpu": "NVIDIA H200",
            "sm": "sm_90",
            "driver": "580.95.05",
            "cuda": "13.0",
            "builder": "11.4.0.106",
            "flags": {"tf32": "on"},
        }
        | fields
    )
