"""Run in a process that has the double: timing caches by TensorRT's rules."""

import math

import tensorrt as trt
from tensorrt.config import new_config
from tensorrt.release import script

KEYS = [f"0x{n:032x}" for n in range(1, 4)]


def cache(*entries, uuid=None, commit=None):
    made = new_config().create_timing_cache(b"")
    made._entries = {KEYS[n]: (hash_, 1.0) for n, hash_ in entries}
    made._runners = {KEYS[n]: 0x80000009 for n, _ in entries[:1]}
    made._uuid = uuid or made._uuid
    made._commit = commit or made._commit
    return made


OTHER, OLDER = bytes(16), "0123456789abcdef"


config = new_config()
key = trt.TimingCacheKey.parse(KEYS[0])
assert str(key) == KEYS[0]
assert key == trt.TimingCacheKey.parse(KEYS[0])
try:
    hash(key)
except TypeError:
    pass
else:
    raise AssertionError("keys cannot be hashed")

one = cache((0, 10), (1, 11))
assert [str(k) for k in one.queryKeys()] == KEYS[:2]
assert one.query(key).tacticHash == 10
assert one.query(trt.TimingCacheKey.parse(KEYS[2])).tacticHash == 2**64 - 1
assert not one.update(trt.TimingCacheKey.parse(KEYS[2]), trt.TimingCacheValue(1, 1.0))
assert not one.update(key, trt.TimingCacheValue(2**64 - 1, 1.0))
assert one.update(key, trt.TimingCacheValue(99, 1.0))
assert one.query(key).tacticHash == 99
assert one.update(key, trt.TimingCacheValue(0, math.nan))
assert [str(k) for k in one.queryKeys()] == KEYS[1:2]

local = cache((0, 10))
assert local.combine(cache((0, 77), (1, 11)), False)
assert local.query(key).tacticHash == 10, "the local entry wins"
assert len(local.queryKeys()) == 2
assert not local.combine(cache((2, 1), commit=OLDER), True), "another release is skipped"
assert not local.combine(cache((2, 1), uuid=OTHER), False)
assert len(local.queryKeys()) == 2

blob = bytes(local.serialize())
again = config.create_timing_cache(blob)
assert bytes(again.serialize()) == blob
assert [str(k) for k in again.queryKeys()] == [str(k) for k in local.queryKeys()]
assert config.create_timing_cache(blob[:-1]) is None, "truncated"
assert config.create_timing_cache(b"junk" + blob) is None
assert config.set_timing_cache(again, False)
assert config.get_timing_cache() is again
assert not config.set_timing_cache(cache((0, 1), uuid=OTHER), False)
assert config.set_timing_cache(cache((0, 1), uuid=OTHER), True)
assert not config.set_timing_cache(cache((0, 1), commit=OLDER), True)

assert not config.set_tactic_sources(1 << 30)
assert config.set_tactic_sources(1)
assert config.get_tactic_sources() == 1

try:
    config.max_num_tacticz = 3
except AttributeError:
    pass
else:
    raise AssertionError("unknown attributes are refused")
assert script() == {}
