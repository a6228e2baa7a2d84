"""What one build did to a timing cache, by comparing keys and winners before and after.

TensorRT's own flag for misses was reported to let some pass (ERROR_ON_TIMING_CACHE_MISS on 11.0),
and cache bytes differ between two GPUs of one model; so key sets and winners are compared here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


EditReason = Literal["pin", "ban", "prefer"]
"""Why the winner of a key was edited before the build."""

CacheWord = Literal["cold", "hit", "partial", "rejected"]
"""`cold`: none was attached, or it held nothing that the build asked for. `hit`: the build added
nothing to it. `partial`: some of what the build asked for had to be timed. `rejected`: what the
store held was not attached, see the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedWinner:
    """A key whose tactic is another one after the build."""

    key: str
    before: str
    """Tactic hash."""
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """Keys of a timing cache before and after one build."""

    before: int
    after: int
    new: tuple[str, ...]
    """Keys that the build had to time: its misses."""
    lost: tuple[str, ...]
    """Keys that are gone; a builder should take none away."""
    changed: tuple[ChangedWinner, ...]
    hits: int | None
    """Keys that the build asked for and found; None where it is not known what it asked for."""


def account(
    before: Mapping[str, str], after: Mapping[str, str], asked: Collection[str] | None = None
) -> Accounting:
    """Compares two maps of key to tactic hash.

    Args:
        before: of the cache that was attached; empty where none was.
        after: of the same cache after the build.
        asked: keys that the build asked for, where that is known.
    """
    hits = None if asked is None else len(set(asked) & before.keys())
    return Accounting(
        before=len(before),
        after=len(after),
        new=tuple(sorted(after.keys() - before.keys())),
        lost=tuple(sorted(before.keys() - after.keys())),
        changed=tuple(
            ChangedWinner(key=key, before=before[key], after=after[key])
            for key in sorted(before.keys() & after.keys())
            if before[key] != after[key]
        ),
        hits=hits if before else 0,
    )


def cache_word(accounting: Accounting, *, attached: bool, rejected: bool) -> CacheWord:
    """The one word that the report has for it."""
    if rejected:
        return "rejected"
    if not attached or not accounting.before:
        return "cold"
    if not (accounting.new or accounting.lost or accounting.changed):
        return "hit"
    return "cold" if accounting.hits == 0 else "partial"


def require_cache_problem(word: CacheWord, reason: str) -> str:
    """Why `--require-cache` is not met; empty where it is: only a hit meets it."""
    if word == "hit":
        return ""
    return f"the timing cache was {word}" + (f": {reason}" if reason else "")
