"""Whether tactics can come from where they are asked to come from, before anything is planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.engine.tactic_policy import WISH_FLAGS
from trtplug.errors import OptionUnsupportedError

if TYPE_CHECKING:
    from trtplug.backends.backend import Backend
    from trtplug.engine.lock import Lock
    from trtplug.engine.tactic_policy import TacticPolicy

TIMING_CACHES = "timing-caches"
"""Folder below the store."""


def check_policy(policy: TacticPolicy, backend: Backend) -> None:
    """Refuses what cannot be meant, and what the backend has not.

    Raises:
        UsageError: a combination that cannot be meant.
        OptionUnsupportedError: the backend has no timing cache.
    """
    policy.check()
    if backend.capabilities().timing_cache:
        return
    options = [f"--{name}" for name in WISH_FLAGS if getattr(policy.wishes, f"{name}s")]
    options += ["--require-cache"] if policy.cache == "require" else []
    if options:
        raise OptionUnsupportedError(
            option=options[0],
            backend=backend.name,
            version=backend.version() or "",
            advice="tactics are chosen through the timing cache of enterprise TensorRT: "
            "--backend trt",
        )


def open_lock(policy: TacticPolicy) -> Lock | None:
    """The lock of `--locked`; None without one.

    Raises:
        DocumentError: it cannot be read.
    """
    if policy.locked is None:
        return None
    from trtplug.engine.lock import read_lock

    return read_lock(policy.locked)


def check_lock(lock: Lock, path: str, backend: Backend) -> None:
    """Refuses a lock that cannot be replayed on this machine.

    Raises:
        LockMismatchError: another backend recorded it.
        LockUnqualifiedError: it was recorded on another GPU, driver or version.
    """
    from trtplug.backends.machine import read_machine
    from trtplug.engine.cache_identity import mapping_differences
    from trtplug.engine.lock_check import require_qualified, require_replayed

    differ = mapping_differences({"backend": lock.backend}, {"backend": backend.name})
    require_replayed(path, tuple(map(str, differ)))
    require_qualified(lock, path, read_machine(), backend.version())


def wishes_of(lock: Lock) -> dict[str, str]:
    """Flags of the wishes that a lock's tactics fulfil already: they are replayed with it."""
    return {name: lock.flags[name] for name in WISH_FLAGS if name in lock.flags}
