"""Run in a process that has the double: timing caches by TensorRT's rules."""

import math

import tensorrt as trt
from tensorrt.config import new_config
from tensorrt.release import script

KEYS = [f"0x{n:032x}" for n in range(1, 4)]


def cache(*entries, device=None, version=None):
    made = new_config().create_timing_cache(b"")
    made._entries = {KEYS[n]: (hash_, 1.0) for n, hash_ in entries}
    made._device = device or made._device
    made._version = version or made._version
    return made


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
assert not local.combine(cache((2, 1), version="11.3.0.99"), True), "another release is skipped"
assert not local.combine(cache((2, 1), device="another"), False)
assert len(local.queryKeys()) == 2

blob = bytes(local.serialize())
again = config.create_timing_cache(blob)
assert bytes(again.serialize()) == blob
assert config.create_timing_cache(blob[:-1]) is None, "truncated"
assert config.create_timing_cache(b"junk" + blob) is None
assert config.set_timing_cache(again, False)
assert config.get_timing_cache() is again
assert not config.set_timing_cache(cache((0, 1), device="another"), False)
assert config.set_timing_cache(cache((0, 1), device="another"), True)
assert not config.set_timing_cache(cache((0, 1), version="11.3.0.99"), True)

try:
    config.max_num_tacticz = 3
except AttributeError:
    pass
else:
    raise AssertionError("unknown attributes are refused")
assert script() == {}
