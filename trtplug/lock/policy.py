"""Whether tactics can come from where they are asked to come from, before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trtplug.errors import OptionUnsupportedError, UsageError
from trtplug.globs import as_flag
from trtplug.lock.pins import TacticWishes

if TYPE_CHECKING:
    from trtplug.backends.backend import Backend
    from trtplug.lock.lock import Lock


CacheUse = Literal["use", "fresh", "require"]
"""`use`: begin with what the store has, and add to it. `fresh`: begin with an empty cache, and let
the store alone. `require`: as `use`, and anything but a hit fails the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticPolicy:
    """At most one of wishes and a lock; a lock and wishes leave no room for a required cache."""

    wishes: TacticWishes = field(default_factory=TacticWishes)
    cache: CacheUse = "use"
    locked: Path | None = None
    """The lock to replay."""

    @property
    def wished(self) -> bool:
        """Whether any tactic was asked for."""
        return self.wishes != TacticWishes()

    def check(self) -> None:
        """Refuses combinations that cannot be meant.

        Raises:
            UsageError: such a combination.
        """
        if self.locked is not None and self.wished:
            raise UsageError(
                "--locked replays a lock as it is, so --pin, --ban and --prefer cannot be honoured",
                "leave out --locked to record a new lock with them",
            )
        if self.cache == "require" and (self.wished or self.locked is not None):
            raise UsageError(
                "--require-cache is about the store's timing cache, and this build does not use it",
                "--pin, --ban and --prefer time every tactic anew; --locked brings its own cache",
            )

    def as_flags(self) -> dict[str, str]:
        """What was asked for, as text, for plan, report and lock."""
        wishes = self.wishes
        pins = sorted(f"{pin.layer}={pin.tactic}" for pin in wishes.pins)
        given = {"pin": pins, "ban": wishes.bans, "prefer": wishes.prefers}
        return {name: as_flag(words, WISH_SEPARATOR) for name, words in given.items() if words}


WISH_SEPARATOR = "; "

WISH_FLAGS = ("pin", "ban", "prefer")
"""Names in `as_flags`; a lock that is replayed brings its own."""


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
    from trtplug.lock.lock import read_lock

    return read_lock(policy.locked)


def check_lock(lock: Lock, path: str, backend: Backend) -> None:
    """Refuses a lock that cannot be replayed on this machine.

    Raises:
        LockMismatchError: another backend recorded it.
        LockUnqualifiedError: it was recorded on another GPU, driver or version.
    """
    from trtplug.backends.find import read_machine
    from trtplug.lock.check import require_qualified, require_replayed
    from trtplug.timing.identity import mapping_differences

    differ = mapping_differences({"backend": lock.backend}, {"backend": backend.name})
    require_replayed(path, tuple(map(str, differ)))
    require_qualified(lock, path, read_machine(), backend.version())


def wishes_of(lock: Lock) -> dict[str, str]:
    """Flags of the wishes that a lock's tactics fulfil already: they are replayed with it."""
    return {name: lock.flags[name] for name in WISH_FLAGS if name in lock.flags}
