"""Tactics of either op, for those who compile and check kernels and need not know what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.tactics.catalog import TACTICS, find_tactic
from trtplug.tactics.check import Tensors, expected, input_arrays, random_tensors, run_tactic
from trtplug.tactics.estimate import predict
from trtplug.tactics.generate import blocks_to_try, generate, threads_of, x_dtype
from trtplug.tactics.pair.catalog import PAIR_TACTICS, PairTactic, find_pair_tactic
from trtplug.tactics.pair.check import (
    PairTensors,
    expected_of_pair,
    pair_arrays,
    random_pair_tensors,
    run_pair,
)
from trtplug.tactics.pair.estimate import predict_pair
from trtplug.tactics.pair.generate import generate_pair, pair_blocks_to_try
from trtplug.tactics.pair.problem import PairProblem
from trtplug.tactics.pair.space import PairCandidate, list_pair_tactics
from trtplug.tactics.problem import Problem
from trtplug.tactics.space import (
    DEFAULT_SHARED_BYTES,
    Candidate,
    is_repeated,
    list_tactics,
    shared_bytes_of,
)
from trtplug.tactics.tactic import Tactic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from trtplug.kernels.source import Headers, KernelSource
    from trtplug.kernels.usage import Usage
    from trtplug.profile import GpuProfile
    from trtplug.tactics.check import Checked
    from trtplug.tactics.estimate import Prediction
    from trtplug.target import Sm
    from trtplug.tensor import Sizes

    Array = NDArray[Any]

EitherTactic = Tactic | PairTactic
EitherProblem = Problem | PairProblem
EitherCandidate = Candidate | PairCandidate
EitherTensors = Tensors | PairTensors

_OTHER_OP = "a tactic met tensors of the other op"

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
        return generate_pair(tactic, _pair(problem), sm, headers)
    return generate(tactic, _single(problem), sm, headers)


def threads_of_either(tactic: EitherTactic) -> int:
    """Threads of a block."""
    return tactic.tile.threads if isinstance(tactic, PairTactic) else threads_of(tactic)


def blocks_to_try_either(tactic: EitherTactic, problem: EitherProblem, sm: Sm) -> tuple[int, ...]:
    """Blocks that an SM is to hold, as the kernel is to be compiled; the first is what is meant."""
    if isinstance(tactic, PairTactic):
        return pair_blocks_to_try(tactic, _pair(problem), sm)
    return blocks_to_try(tactic, _single(problem), sm)


def predict_either(
    tactic: EitherTactic, problem: EitherProblem, profile: GpuProfile, usage: Usage, sizes: Sizes
) -> Prediction | None:
    """The prediction at an input; None where figures are missing."""
    if isinstance(tactic, PairTactic):
        return predict_pair(tactic, _pair(problem), profile, usage, sizes)
    return predict(tactic, _single(problem), profile, usage, sizes)


def random_either(
    tactic: EitherTactic, problem: EitherProblem, sizes: Sizes, rng: np.random.Generator
) -> EitherTensors:
    """Normal inputs that the tactic's types hold exactly."""
    if isinstance(problem, PairProblem):
        return random_pair_tensors(problem, sizes, rng)
    return random_tensors(problem, sizes, rng, x_dtype_of_either(tactic, problem))


def x_dtype_of_either(tactic: EitherTactic, problem: EitherProblem) -> str:
    """Type of the input."""
    if isinstance(tactic, PairTactic):
        return problem.dtype
    return x_dtype(tactic, _single(problem))


def run_either(
    tactic: EitherTactic,
    problem: EitherProblem,
    ptx: str,
    tensors: EitherTensors,
    blocks: Sequence[int] | None = None,
) -> Checked:
    """The emulator's verdict on a compiled kernel.

    Raises:
        PtxError: an instruction that the emulator does not know.
    """
    if isinstance(tensors, PairTensors) and isinstance(tactic, PairTactic):
        return run_pair(tactic, _pair(problem), ptx, tensors, blocks=blocks)
    if isinstance(tensors, Tensors) and not isinstance(tactic, PairTactic):
        return run_tactic(tactic, _single(problem), ptx, tensors, blocks=blocks)
    raise TypeError(_OTHER_OP)


def arrays_of_either(
    tactic: EitherTactic, problem: EitherProblem, tensors: EitherTensors
) -> dict[str, Array]:
    """What a kernel reads, as flat bits, in order of its arguments."""
    if isinstance(tensors, PairTensors) and isinstance(tactic, PairTactic):
        return pair_arrays(tactic, _pair(problem), tensors)
    if isinstance(tensors, Tensors) and not isinstance(tactic, PairTactic):
        return input_arrays(tactic, _single(problem), tensors)
    raise TypeError(_OTHER_OP)


def expected_of_either(problem: EitherProblem, tensors: EitherTensors) -> Array:
    """The output [N, outputs, rows, columns] in float64."""
    if isinstance(tensors, PairTensors):
        return expected_of_pair(_pair(problem), tensors)
    return expected(_single(problem), tensors)


def shared_bytes_of_either(tactic: EitherTactic, sm: Sm) -> int:
    """Shared memory of a block."""
    if isinstance(tactic, PairTactic):
        return tactic.tile.shared_bytes
    return shared_bytes_of(tactic, sm)


def exists_on(tactic: EitherTactic, sm: Sm) -> bool:
    """Whether a kernel of its own is made for the SM."""
    return isinstance(tactic, PairTactic) or not is_repeated(tactic, sm)


def _pair(problem: EitherProblem) -> PairProblem:
    if isinstance(problem, PairProblem):
        return problem
    raise TypeError("a tactic for pairs met a single convolution")


def _single(problem: EitherProblem) -> Problem:
    if isinstance(problem, Problem):
        return problem
    raise TypeError("a tactic for single convolutions met a pair")
