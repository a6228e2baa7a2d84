"""The engine's bytes: a header as real ones have it, and JSON behind it."""

from __future__ import annotations

import json
import re
import struct
import zlib

from tensorrt.enums import BuilderFlag, ProfilingVerbosity
from tensorrt.host import IHostMemory
from tensorrt.inspector import inspect_layers
from tensorrt.plugin_calls import save
from tensorrt.release import VERSION

HEADER_BYTES = 64


def write_plan(
    network: object, config: object, layers: list[dict], profiles: list[dict]
) -> IHostMemory:
    detailed = config.profiling_verbosity == ProfilingVerbosity.DETAILED
    body = {
        "inspector": inspect_layers(network, layers, profiles, detailed),
        "profiles": profiles,
        "inputs": [_io(t) for t in network._inputs],
        "outputs": [_io(t) for t in network._outputs],
        "plugins": [
            save(layer["plugin"]) | {"at": [list(p[1]) for p in layer["plugin"].profile]}
            for layer in layers
            if "plugin" in layer
        ],
        "version_compatible": config.get_flag(BuilderFlag.VERSION_COMPATIBLE),
    }
    data = json.dumps(body).encode()
    head = bytearray(HEADER_BYTES)
    head[:4] = b"ptrt"
    struct.pack_into("<Q", head, 16, HEADER_BYTES + len(data))
    head[24:28] = bytes(min(255, int(n)) for n in re.findall(r"\d+", VERSION)[:4])
    struct.pack_into("<I", head, 32, zlib.crc32(data))
    return IHostMemory(bytes(head) + data)


def read_plan(data: bytes) -> tuple[dict, bytes] | None:
    """Contents, and the version of the builder; None for what is no engine, or a damaged one."""
    body = data[HEADER_BYTES:]
    if data[:4] != b"ptrt" or struct.unpack_from("<I", data, 32)[0] != zlib.crc32(body):
        return None
    return json.loads(body), data[24:28]


def _io(tensor: object) -> dict:
    return {"name": tensor.name, "dtype": int(tensor.dtype), "shape": list(tensor.shape)}
