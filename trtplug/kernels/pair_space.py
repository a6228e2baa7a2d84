"""Which pair tactics can run a problem on an SM, and why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.pair_catalog import PAIR_TACTICS, PairTactic
from trtplug.kernels.pair_launch import launch_pair
from trtplug.kernels.problem import padded
from trtplug.kernels.space import (
    DEFAULT_SHARED_BYTES,
    LARGEST_INDEX,
    MOST_BLOCKS_DOWN,
    MOST_TAPS,
    STATIC_SHARED_BYTES,
    Exclusion,
)
from trtplug.kernels.tactic import FIRST_ASYNC_SM
from trtplug.kernels.usage import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCandidate:
    """A tactic and whether it may run."""

    tactic: PairTactic
    exclusion: Exclusion | None
    """None where it is legal."""


def list_pair_tactics(
    problem: PairProblem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
) -> tuple[PairCandidate, ...]:
    """Every tactic, in order of number, with the first reason against it; see `list_tactics`."""
    return tuple(
        PairCandidate(tactic=t, exclusion=next(_reasons(t, problem, sm, shared_bytes), None))
        for t in PAIR_TACTICS
    )


def _reasons(
    tactic: PairTactic, problem: PairProblem, sm: Sm, shared_bytes: int
) -> Iterator[Exclusion]:
    if sm.number not in LIMITS:
        yield Exclusion.SM
        return
    if problem.dtype == "float":
        yield Exclusion.DTYPE
    if problem.dtype == "bfloat16" and sm.number < FIRST_ASYNC_SM:
        yield Exclusion.SM_DTYPE
    if problem.depthwise.taps > MOST_TAPS:
        yield Exclusion.KERNEL_SIZE
    if tactic.tile.shared_bytes > min(shared_bytes, STATIC_SHARED_BYTES):
        yield Exclusion.SHARED_MEMORY
    yield from _size_reasons(tactic, problem)


def _size_reasons(tactic: PairTactic, problem: PairProblem) -> Iterator[Exclusion]:
    largest = problem.x.max
    batch, _, rows, columns = problem.output(largest)
    # The window may begin before the image and end after it.
    reach = sum(problem.attributes.depthwise.pads)
    image = (largest[2] + reach) * (largest[3] + reach) * padded(problem.channels)
    if max(batch * rows * columns, image) > LARGEST_INDEX:
        yield Exclusion.OFFSETS
    if launch_pair(tactic, problem, largest).grid[1] > MOST_BLOCKS_DOWN:
        yield Exclusion.GRID
