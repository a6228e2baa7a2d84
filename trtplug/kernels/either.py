"""Tactics of either op, for those who compile and check kernels and need not know what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.kernels.catalog import TACTICS, find_tactic
from trtplug.kernels.estimate import predict
from trtplug.kernels.generate import blocks_to_try, generate, threads_of, x_dtype
from trtplug.kernels.pair_catalog import PAIR_TACTICS, PairTactic, find_pair_tactic
from trtplug.kernels.pair_estimate import predict_pair
from trtplug.kernels.pair_generate import generate_pair, pair_blocks_to_try
from trtplug.kernels.pair_problem import PairProblem
from trtplug.kernels.pair_space import PairCandidate, list_pair_tactics
from trtplug.kernels.problem import Problem
from trtplug.kernels.space import (
    DEFAULT_SHARED_BYTES,
    Candidate,
    is_repeated,
    list_tactics,
    shared_bytes_of,
)
from trtplug.kernels.tactic import Tactic

if TYPE_CHECKING:
    from trtplug.kernels.estimate import Prediction
    from trtplug.kernels.source import Headers, KernelSource
    from trtplug.kernels.usage import Usage
    from trtplug.profile import GpuProfile
    from trtplug.target import Sm
    from trtplug.tensor import Sizes


EitherTactic = Tactic | PairTactic
EitherProblem = Problem | PairProblem
EitherCandidate = Candidate | PairCandidate

ALL_TACTICS: tuple[EitherTactic, ...] = (*TACTICS, *PAIR_TACTICS)


def find_either(name: str) -> EitherTactic | None:
    """The tactic of that name, of either op."""
    return find_tactic(name) or find_pair_tactic(name)


def list_either(
    problem: EitherProblem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
) -> tuple[EitherCandidate, ...]:
    """The tactics of the problem's op, each with the first reason against it."""
    if isinstance(problem, PairProblem):
        return list_pair_tactics(problem, sm, shared_bytes)
    return list_tactics(problem, sm, shared_bytes)


def tactics_of(problem: EitherProblem) -> tuple[EitherTactic, ...]:
    """All tactics of the problem's op, legal or not."""
    return PAIR_TACTICS if isinstance(problem, PairProblem) else TACTICS


def generate_either(
    tactic: EitherTactic, problem: EitherProblem, sm: Sm, headers: Headers | None = None
) -> KernelSource:
    """The source of one kernel; `tactic` must be legal for the problem on the SM."""
    if isinstance(tactic, PairTactic):
        return generate_pair(tactic, only_pair(problem), sm, headers)
    return generate(tactic, only_single(problem), sm, headers)


def threads_of_either(tactic: EitherTactic) -> int:
    """Threads of a block."""
    return tactic.tile.threads if isinstance(tactic, PairTactic) else threads_of(tactic)


def blocks_to_try_either(tactic: EitherTactic, problem: EitherProblem, sm: Sm) -> tuple[int, ...]:
    """Blocks that an SM is to hold, as the kernel is to be compiled; the first is what is meant."""
    if isinstance(tactic, PairTactic):
        return pair_blocks_to_try(tactic, only_pair(problem), sm)
    return blocks_to_try(tactic, only_single(problem), sm)


def predict_either(
    tactic: EitherTactic, problem: EitherProblem, profile: GpuProfile, usage: Usage, sizes: Sizes
) -> Prediction | None:
    """The prediction at an input; None where figures are missing."""
    if isinstance(tactic, PairTactic):
        return predict_pair(tactic, only_pair(problem), profile, usage, sizes)
    return predict(tactic, only_single(problem), profile, usage, sizes)


def x_dtype_of_either(tactic: EitherTactic, problem: EitherProblem) -> str:
    """Type of the input."""
    if isinstance(tactic, PairTactic):
        return problem.dtype
    return x_dtype(tactic, only_single(problem))


def shared_bytes_of_either(tactic: EitherTactic, sm: Sm) -> int:
    """Shared memory of a block."""
    if isinstance(tactic, PairTactic):
        return tactic.tile.shared_bytes
    return shared_bytes_of(tactic, sm)


def exists_on(tactic: EitherTactic, sm: Sm) -> bool:
    """Whether a kernel of its own is made for the SM."""
    return isinstance(tactic, PairTactic) or not is_repeated(tactic, sm)


def only_pair(problem: EitherProblem) -> PairProblem:
    """The same, where it is a pair.

    Raises:
        TypeError: it is a single convolution.
    """
    if isinstance(problem, PairProblem):
        return problem
    raise TypeError("a tactic for pairs met a single convolution")


def only_single(problem: EitherProblem) -> Problem:
    """The same, where it is a single convolution.

    Raises:
        TypeError: it is a pair.
    """
    if isinstance(problem, Problem):
        return problem
    raise TypeError("a tactic for single convolutions met a pair")
