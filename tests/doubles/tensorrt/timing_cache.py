"""Timing caches by the documented rules: header, keys, queries, edits, combining.

Sources: NvInfer.h (ITimingCache); the support policies (conflicting keys keep the local entry); the
bytes, see `cache_bytes`; the words of a refusal, "Timing cache header mismatch", from
styler00dollar/VSGAN-tensorrt-docker#74 (10.4): a cache of another GPU of the same model has another
UUID and is refused, one of another build has another commit id. Not known: at which severity that
is said, what `create_timing_cache` gives for bytes that are no cache (here None), and whether
`ignore_mismatch` takes another commit id too (here not: NVIDIA's documentation speaks of device
properties alone).
"""

from __future__ import annotations

import hashlib
import math

from tensorrt import cache_bytes
from tensorrt.host import IHostMemory
from tensorrt.logger import Logger
from tensorrt.release import VERSION, Native, drop_missing, gpu_uuid

INVALID_HASH = 2**64 - 1


def commit_id() -> str:
    """Of this build of the library."""
    return hashlib.sha256(VERSION.encode()).hexdigest()[:16]


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
        if self._logger is not None:
            who = f"UUID = {uuid_text(self._uuid)}, commit ID = {self._commit}"
            self._logger.log(Logger.VERBOSE, f"Serializing timing cache. {who}")
            self._logger.log(Logger.INFO, "Serialized 27 bytes of code generator cache.")
            self._logger.log(Logger.INFO, "Serialized 3 bytes of compilation cache.")
            count = len(self._entries)
            self._logger.log(Logger.INFO, f"Serialized {count} timing cache entries")
        classic, compiler = [], []
        for text, (tactic, time_ms) in self._entries.items():
            key, runner = bytes.fromhex(text[2:]), self._runners.get(text)
            if runner is None:
                compiler.append((key, tactic, time_ms))
            else:
                classic.append((key, runner, tactic, time_ms))
        return IHostMemory(cache_bytes.pack(self._uuid, self._commit, classic, compiler))

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:
        if input_cache._commit != self._commit:
            return False
        if input_cache._uuid != self._uuid and not ignore_mismatch:
            return False
        self._entries = {**input_cache._entries, **self._entries}
        self._runners = {**input_cache._runners, **self._runners}
        return True

    def reset(self) -> bool:
        self._entries, self._runners = {}, {}
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


def uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "GPU-" + "-".join(parts)


def open_cache(blob: bytes, logger: Logger | None = None) -> ITimingCache | None:
    """What `IBuilderConfig.create_timing_cache` gives; None for what is no cache."""
    cache = object.__new__(ITimingCache)
    cache._logger = logger
    cache._uuid, cache._commit, cache._entries, cache._runners = gpu_uuid(), commit_id(), {}, {}
    if not blob:
        return cache
    read = cache_bytes.unpack(blob)
    if read is None:
        return None
    cache._uuid, cache._commit, classic, compiler = read
    for key, runner, tactic, time_ms in classic:
        cache._entries[f"0x{key.hex()}"] = (tactic, time_ms)
        cache._runners[f"0x{key.hex()}"] = runner
    for key, tactic, time_ms in compiler:
        cache._entries[f"0x{key.hex()}"] = (tactic, time_ms)
    if logger is not None:
        logger.log(Logger.VERBOSE, f"Loaded {len(cache._entries)} timing cache entries.")
    return cache


def fits(cache: ITimingCache, ignore_mismatch: bool, logger: Logger | None = None) -> bool:
    """Whether a cache may be attached here; says so where not."""
    same = cache._commit == commit_id() and (cache._uuid == gpu_uuid() or ignore_mismatch)
    if not same and logger is not None:
        given = f"UUID = {uuid_text(cache._uuid)}, commit = {cache._commit}"
        here = f"UUID = {uuid_text(gpu_uuid())}, commit = {commit_id()}"
        logger.log(
            Logger.WARNING,
            f"Timing cache header mismatch: Incoming ITimingCache: {given} Runtime device: {here} "
            "The incoming cache will not be used!",
        )
    return same
