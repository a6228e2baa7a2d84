"""The child process that does one operation on timing caches, with TensorRT itself.

A line of JSON in, two lines of JSON out; blobs in base64. The first says that the library is there.
A hostile file can crash the library that reads it: then there is no second line, and the cache
counts as refused.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any

from trtplug.backends.child import die_with_parent, take_stdout

_INVALID = 2**64 - 1
"""`TimingCacheValue.tacticHash` of a key that is not there. Source: NvInfer.h."""


def main() -> None:
    """Entry point of the child."""
    die_with_parent()
    channel = take_stdout()
    request = json.loads(sys.stdin.readline())

    import tensorrt as trt

    config = trt.Builder(trt.Logger(trt.Logger.ERROR)).create_builder_config()
    os.write(channel, b"true\n")
    caches = [_open(config, base64.b64decode(blob)) for blob in request["blobs"]]
    answer = None if None in caches else _OPERATIONS[request["operation"]](trt, caches, request)
    os.write(channel, (json.dumps(answer) + "\n").encode())
    os._exit(0)


def _open(config: Any, blob: bytes) -> Any:
    """A cache that fits this device and release; None for any other. Mismatch is never ignored."""
    cache = config.create_timing_cache(blob)
    return cache if cache is not None and config.set_timing_cache(cache, False) else None


def _read(trt: Any, caches: list[Any], request: dict[str, Any]) -> object:  # noqa: ARG001
    (cache,) = caches
    found = {}
    for key in cache.queryKeys():
        entry = cache.query(key)
        if entry.tacticHash != _INVALID:
            found[str(key)] = [f"0x{entry.tacticHash:x}", entry.timingMSec]
    return found


def _combine(trt: Any, caches: list[Any], request: dict[str, Any]) -> object:  # noqa: ARG001
    cache, other = caches
    return _packed(cache) if cache.combine(other, False) else None


def _update(trt: Any, caches: list[Any], request: dict[str, Any]) -> object:
    (cache,) = caches
    for text, (tactic_hash, time_ms) in request["values"].items():
        entry = trt.TimingCacheValue(int(tactic_hash, 16), time_ms)
        if not cache.update(trt.TimingCacheKey.parse(text), entry):
            return None
    return _packed(cache)


def _packed(cache: Any) -> str:
    return base64.b64encode(memoryview(cache.serialize())).decode()


_OPERATIONS = {"read": _read, "combine": _combine, "update": _update}


if __name__ == "__main__":
    main()
