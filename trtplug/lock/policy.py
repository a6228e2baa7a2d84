"""Whether tactics can come from where they are asked to come from, before anything is planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trtplug.errors import OptionUnsupportedError, UsageError
from trtplug.lock.pins import TacticOverrides
from trtplug.settings import as_flag

if TYPE_CHECKING:
    from trtplug.backends.backend import Backend
    from trtplug.lock.lock import Lock


CacheUse = Literal["use", "fresh", "require"]
"""`use`: begin with what the store has, and add to it. `fresh`: begin with an empty cache, and let
the store alone. `require`: as `use`, and anything but a hit fails the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticPolicy:
    """At most one of overrides and a lock; with either, a cache hit cannot be required."""

    overrides: TacticOverrides = field(default_factory=TacticOverrides)
    cache: CacheUse = "use"
    locked: Path | None = None
    """The lock to replay."""

    @property
    def has_overrides(self) -> bool:
        """Whether any tactic was asked for."""
        return self.overrides != TacticOverrides()

    def check(self) -> None:
        """Refuses combinations that cannot be meant.

        Raises:
            UsageError: such a combination.
        """
        if self.locked is not None and self.has_overrides:
            raise UsageError(
                "--locked replays a lock as it is, so --pin, --ban and --prefer cannot be honoured",
                "leave out --locked to record a new lock with them",
            )
        if self.cache == "require" and (self.has_overrides or self.locked is not None):
            raise UsageError(
                "--require-cache is about the store's timing cache, and this build does not use it",
                "--pin, --ban and --prefer time every tactic anew; --locked brings its own cache",
            )

    def as_flags(self) -> dict[str, str]:
        """What was asked for, as text, for plan, report and lock."""
        overrides = self.overrides
        pins = sorted(f"{pin.layer}={pin.tactic}" for pin in overrides.pins)
        given = {"pin": pins, "ban": overrides.bans, "prefer": overrides.prefers}
        return {name: as_flag(words, OVERRIDE_SEPARATOR) for name, words in given.items() if words}


OVERRIDE_SEPARATOR = "; "

OVERRIDE_FLAGS = ("pin", "ban", "prefer")
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
    options = [f"--{name}" for name in OVERRIDE_FLAGS if getattr(policy.overrides, f"{name}s")]
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


def override_flags(lock: Lock) -> dict[str, str]:
    """Flags of the overrides that a lock was made with: its tactics hold them already."""
    return {name: lock.flags[name] for name in OVERRIDE_FLAGS if name in lock.flags}
