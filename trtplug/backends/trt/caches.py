"""TensorRT's own operations on timing caches, each in a process of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from typing import TYPE_CHECKING, Any

from trtplug.backends.cache_api import CacheValue
from trtplug.backends.launch import ask
from trtplug.errors import BackendMissingError

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger(__name__)

MODULE = "trtplug.backends.trt.child_cache"

_LIMIT_S = 300.0
"""For loading TensorRT, which takes seconds, and one operation, which takes less."""


class TrtTimingCaches:
    """See `cache_api.TimingCacheApi`. A crash of the library is its refusal."""

    def __init__(self) -> None:
        self._read: dict[str, Mapping[str, CacheValue] | None] = {}

    def read(self, blob: bytes) -> Mapping[str, CacheValue] | None:
        """All keys with their values; the same bytes are read once, since that takes seconds."""
        digest = hashlib.sha256(blob).hexdigest()
        if digest not in self._read:
            answer = _ask("read", (blob,))
            if answer is not None:
                answer = {k: CacheValue(tactic_hash=v[0], time_ms=v[1]) for k, v in answer.items()}
            self._read[digest] = answer
        return self._read[digest]

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
    request = {
        "operation": operation,
        "blobs": [base64.b64encode(b).decode() for b in blobs],
        "values": values or {},
    }
    done = ask(MODULE, json.dumps(request), limit_s=_LIMIT_S)
    if done.timed_out or not done.lines:
        # It says nothing of the cache: one that is whole must not be taken for a refused one.
        what = f"{operation} a timing cache" if done.timed_out else "be loaded"
        raise BackendMissingError(
            backend="trt",
            problem=f"TensorRT could not {what}: {done.how}",
            advice="`nvidia-smi` shows whether the GPU answers; `trtplug doctor` checks the rest",
        )
    try:
        _, answer = map(json.loads, done.lines)
    except ValueError:
        _log.info("TensorRT refuses to %s a timing cache: it ended with %s", operation, done.how)
        return None
    return answer


def _blob(answer: str | None) -> bytes | None:
    return None if answer is None else base64.b64decode(answer)
