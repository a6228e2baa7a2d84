"""TensorRT's own operations on timing caches, each in a process of its own."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from trtplug.backends.cache_api import CacheValue
from trtplug.backends.child import PARENT_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping


MODULE = "trtplug.backends.trt.child_cache"


class TrtTimingCaches:
    """See `cache_api.TimingCacheApi`. A crash of the library is its refusal."""

    def read(self, blob: bytes) -> Mapping[str, CacheValue] | None:
        """All keys with their values."""
        said = _ask("read", (blob,))
        if said is None:
            return None
        return {k: CacheValue(tactic_hash=v[0], time_ms=v[1]) for k, v in said.items()}

    def combine(self, base: bytes, other: bytes) -> bytes | None:
        """Both in one; where both hold a key, `base` keeps its value."""
        return _blob(_ask("combine", (base, other)))

    def update(self, blob: bytes, values: Mapping[str, CacheValue]) -> bytes | None:
        """The cache with other winners for keys that it has; None too where it lacks a key."""
        plain = {key: [v.tactic_hash, v.time_ms] for key, v in values.items()}
        return _blob(_ask("update", (blob,), plain))


def _ask(
    operation: str, blobs: tuple[bytes, ...], values: Mapping[str, object] | None = None
) -> Any:  # noqa: ANN401 - JSON
    wish = {
        "operation": operation,
        "blobs": [base64.b64encode(b).decode() for b in blobs],
        "values": values or {},
    }
    done = subprocess.run(
        [sys.executable, "-m", MODULE],
        input=json.dumps(wish) + "\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None  # it crashed, or wrote half a line


def _blob(said: str | None) -> bytes | None:
    return None if said is None else base64.b64decode(said)
