"""Timing caches in TensorRT's own bytes, with other keys and numbers than any real one."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_FILE = Path(__file__).parents[1] / "doubles/tensorrt/cache_bytes.py"


def cache_bytes() -> ModuleType:
    """The writer of the double, without the double."""
    spec = importlib.util.spec_from_file_location("cache_bytes", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


UUID = bytes(range(0x10, 0x20))
COMMIT = "00c0ffee12345678"


def key(number: int) -> bytes:
    return bytes((number * 37 + place) % 256 for place in range(16))


def blob(**changes: object) -> bytes:
    """Three classic entries, two of the compiler's."""
    writer = cache_bytes()
    made: bytes = writer.pack(
        UUID,
        COMMIT,
        [
            (key(1), writer.CASK_CONVOLUTION, 0x1234567890ABCDEF, 0.25),
            (key(2), writer.REFORMAT, 0x3EA, 0.0078125),
            (key(3), 0x8000007F, 0, float("inf")),
        ],
        [(key(4), 0x49175FA8B00A3, 0.0316), (key(5), 0x2A, 1.5)],
        **changes,
    )
    return made
