"""Run in a process that has the double: operations on timing caches, from the parent's side."""

import sys
from pathlib import Path

import tensorrt as trt
from tensorrt.cache_bytes import pack, unpack

from trtplug.backends.cache_api import CacheValue, CachingBackend
from trtplug.backends.find import timing_cache_api
from trtplug.backends.trt.backend import TrtBackend
from trtplug.backends.trt.child_build import _attach_cache as attach_cache

assert isinstance(TrtBackend(), CachingBackend)
api = timing_cache_api()
blob = Path(sys.argv[1]).read_bytes()

values = api.read(blob)
assert values is not None
assert len(values) == 3
assert all(k.startswith("0x") and len(k) == 34 and v.time_ms > 0 for k, v in values.items())
assert api.read(b"") == {}

first, second, _ = values
edited = api.update(blob, {first: CacheValue(tactic_hash="0x1f", time_ms=1.0)})
assert edited is not None
assert api.read(edited)[first].tactic_hash == "0x1f"
assert api.read(edited)[second] == values[second]
unknown = {f"0x{1:032x}": CacheValue(tactic_hash="0x1f", time_ms=1.0)}
assert api.update(blob, unknown) is None

assert api.read(api.combine(blob, edited)) == values, "the first keeps its own"
assert api.read(api.combine(edited, blob))[first].tactic_hash == "0x1f"
assert api.read(api.combine(b"", blob)) == values

damaged = blob.replace(b"format_version=1", b"format_version=1\n")
for bad in (blob[:-1], blob[:3], b"junk", bytes(64), damaged):
    assert api.read(bad) is None
    assert api.combine(blob, bad) is None
    assert api.combine(bad, blob) is None
    assert api.update(bad, {}) is None


def changed(**fields: object) -> bytes:
    """The same cache, whole, of another machine or release."""
    read = dict(zip(("uuid", "commit", "classic", "compiler"), unpack(blob), strict=True))
    return pack(**{**read, **fields})


# `ignore_mismatch` is never true, neither here nor in a build.
assert api.read(changed()) == values
for foreign in (changed(uuid=bytes(16)), changed(commit="0123456789abcdef")):
    assert api.read(foreign) is None
    assert api.combine(blob, foreign) is None
    file = Path("foreign.cache")
    file.write_bytes(foreign)
    config = trt.Builder(trt.Logger()).create_builder_config()
    assert attach_cache(config, str(file))[1], "a foreign cache was attached"
