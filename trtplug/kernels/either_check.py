"""Kernels of either op run on the CPU, for those who need not know which; loads the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.kernels.either import only_pair, only_single, x_dtype_of_either
from trtplug.kernels.pair_catalog import PairTactic
from trtplug.kernels.pair_check import (
    PairTensors,
    expected_of_pair,
    pair_arrays,
    random_pair_tensors,
    run_pair,
)
from trtplug.kernels.pair_problem import PairProblem
from trtplug.kernels.run_check import Tensors, expected, input_arrays, random_tensors, run_tactic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from trtplug.kernels.either import EitherProblem, EitherTactic
    from trtplug.kernels.run_check import Checked
    from trtplug.tensor import Sizes


if TYPE_CHECKING:
    Array = NDArray[Any]


EitherTensors = Tensors | PairTensors

_OTHER_OP = "a tactic met tensors of the other op"


def random_either(
    tactic: EitherTactic, problem: EitherProblem, sizes: Sizes, rng: np.random.Generator
) -> EitherTensors:
    """Normal inputs that the tactic's types hold exactly."""
    if isinstance(problem, PairProblem):
        return random_pair_tensors(problem, sizes, rng)
    return random_tensors(problem, sizes, rng, x_dtype_of_either(tactic, problem))


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
        return run_pair(tactic, only_pair(problem), ptx, tensors, blocks=blocks)
    if isinstance(tensors, Tensors) and not isinstance(tactic, PairTactic):
        return run_tactic(tactic, only_single(problem), ptx, tensors, blocks=blocks)
    raise TypeError(_OTHER_OP)


def arrays_of_either(
    tactic: EitherTactic, problem: EitherProblem, tensors: EitherTensors
) -> dict[str, Array]:
    """What a kernel reads, as flat bits, in order of its arguments."""
    if isinstance(tensors, PairTensors) and isinstance(tactic, PairTactic):
        return pair_arrays(tactic, only_pair(problem), tensors)
    if isinstance(tensors, Tensors) and not isinstance(tactic, PairTactic):
        return input_arrays(tactic, only_single(problem), tensors)
    raise TypeError(_OTHER_OP)


def expected_of_either(problem: EitherProblem, tensors: EitherTensors) -> Array:
    """The output [N, outputs, rows, columns] in float64."""
    if isinstance(tensors, PairTensors):
        return expected_of_pair(only_pair(problem), tensors)
    return expected(only_single(problem), tensors)
