"""Where the tactics of a build are to come from, as it was asked for. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trtplug.engine.pins import TacticWishes
from trtplug.errors import UsageError
from trtplug.globs import as_flag

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
