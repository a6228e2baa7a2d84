"""Which release the double is, and how it is to misbehave.

Both come from the folder that holds the package `tensorrt`: the release from a `dist-info` folder
there, as pip would leave it; the rest from `double.json`:

    gpu        name of the GPU whose timings these are
    uuid       32 hexadecimal digits: that of the GPU, where it is not to follow from its name
    full       true: the GPU is full, so that no builder can be made
    combinations  globs of layers that have a second combination of formats, channels last
    crash      "parse", "build", "deserialize" or "execute": SIGSEGV there
    fail       "build", "deserialize" or "execute": the call says that it failed
    leak       globs of layers whose cache misses ERROR_ON_TIMING_CACHE_MISS does not see
    deaf       globs of layers that take their fastest tactic, whatever the cache holds for them
    stubborn   the same, and they write it into the cache
    unusable   globs of kernels that cannot be built when the cache asks for them
    unnamed    globs of kernels that the engine calls otherwise than the log
    drop_plugins  globs of plugin nodes that no layer of the inspector is known to be
    drift      a number; another one gives other timings, as another driver would
    sleep_s    how long a build takes
    release    names of another release than the package says, such as "11.0"
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
from pathlib import Path

# No process with this package in it has a use for more, and each thread is made at a cost.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HOME = Path(__file__).absolute().parent.parent


def script() -> dict:
    file = HOME / "double.json"
    return json.loads(file.read_text()) if file.is_file() else {}


# `importlib.metadata` would take longer to load than all of this package.
(_INFO,) = HOME.glob("tensorrt-*.dist-info")
VERSION = _INFO.stem.partition("-")[2]
RELEASE = tuple(int(n) for n in re.findall(r"\d+", script().get("release", VERSION))[:2])
MAJOR = RELEASE[0]


def gpu_name() -> str:
    return script().get("gpu", "NVIDIA Double 9000")


def gpu_uuid() -> bytes:
    given = script().get("uuid")
    return bytes.fromhex(given) if given else hashlib.md5(gpu_name().encode()).digest()


def crash_if_told(where: str) -> None:
    if script().get("crash") == where:
        os.kill(os.getpid(), signal.SIGSEGV)


def told_to_fail(where: str) -> bool:
    return script().get("fail") == where


class Native:
    """A class of the bindings: it refuses attributes that it does not have, as pybind11 does."""

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, name, value)


def value(name: str, default: object, since: str = "10.0", removed: str = "99.0"):
    """A property that can be written and only holds what it was given; None in other releases."""
    if not in_release(since, removed):
        return None

    def get(self: Native) -> object:
        return getattr(self, f"_{name}", default)

    def put(self: Native, given: object) -> None:
        object.__setattr__(self, f"_{name}", given)

    return property(get, put)


def in_release(since: str, removed: str = "99.0") -> bool:
    first, last = (tuple(map(int, v.split("."))) for v in (since, removed))
    return first <= RELEASE < last


def drop_missing(cls: type) -> type:
    """Takes away the members that this release does not have: those that are None."""
    for name, member in list(vars(cls).items()):
        if member is None and not name.startswith("__"):
            delattr(cls, name)
    return cls
