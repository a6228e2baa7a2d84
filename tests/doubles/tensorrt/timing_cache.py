"""Timing caches by the documented rules: header, keys, queries, edits, combining.

Sources: NvInfer.h (ITimingCache) and the support policies: a cache needs the very same release; its
header is held against the device unless `ignore_mismatch`; conflicting keys keep the local entry.
"""

from __future__ import annotations

import json
import math
import zlib

from tensorrt.host import IHostMemory
from tensorrt.release import VERSION, Native, drop_missing, gpu_name

INVALID_HASH = 2**64 - 1
MAGIC = b"DBLCACHE"


class TimingCacheKey(Native):
    """16 bytes; it cannot be hashed in Python, so its text is what to use."""

    __hash__ = None
    _text = ""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.TimingCacheKey: No constructor defined!")

    @staticmethod
    def parse(text: str) -> TimingCacheKey:
        key = object.__new__(TimingCacheKey)
        key._text = f"0x{int(text, 16):032x}"
        return key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TimingCacheKey) and str(self) == str(other)

    def __str__(self) -> str:
        return self._text


class TimingCacheValue(Native):
    tacticHash = INVALID_HASH
    timingMSec = math.inf

    def __init__(self, arg0: int, arg1: float) -> None:
        self.tacticHash = arg0
        self.timingMSec = arg1


@drop_missing
class ITimingCache(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ITimingCache: No constructor defined!")

    def serialize(self) -> IHostMemory:
        body = json.dumps(
            {"version": self._version, "device": self._device, "entries": self._entries}
        ).encode()
        return IHostMemory(MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        if input_cache._version != self._version:
            return False
        if input_cache._device != self._device and not ignore_mismatch:
            return False
        self._entries = {**input_cache._entries, **self._entries}
        return True

    def reset(self) -> bool:
        self._entries = {}
        return True

    def queryKeys(self) -> list[TimingCacheKey]:
        return [TimingCacheKey.parse(text) for text in self._entries]

    def query(self, key: TimingCacheKey) -> TimingCacheValue:
        found = self._entries.get(str(key))
        return TimingCacheValue(*found) if found else TimingCacheValue(INVALID_HASH, math.inf)

    def update(self, key: TimingCacheKey, value: TimingCacheValue) -> bool:
        if str(key) not in self._entries:
            return False
        if math.isnan(value.timingMSec):
            del self._entries[str(key)]
            return True
        if value.tacticHash == INVALID_HASH:
            return False
        self._entries[str(key)] = (value.tacticHash, value.timingMSec)
        return True


def open_cache(blob: bytes) -> ITimingCache | None:
    """What `IBuilderConfig.create_timing_cache` gives; None for what is no cache."""
    cache = object.__new__(ITimingCache)
    cache._version, cache._device, cache._entries = VERSION, gpu_name(), {}
    if not blob:
        return cache
    body = blob[12:]
    if blob[:8] != MAGIC or blob[8:12] != zlib.crc32(body).to_bytes(4, "little"):
        return None
    raw = json.loads(body)
    cache._version, cache._device = raw["version"], raw["device"]
    cache._entries = {k: tuple(v) for k, v in raw["entries"].items()}
    return cache


def fits(cache: ITimingCache, ignore_mismatch: bool) -> bool:
    """Whether a cache may be attached here."""
    return cache._version == VERSION and (cache._device == gpu_name() or ignore_mismatch)
