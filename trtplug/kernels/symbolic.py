"""A kernel of either op on sizes that need not be numbers yet: launch, arguments, output.

Only `+ - * //` are used on sizes, so that TensorRT's symbolic integers work as well as ints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.kernels.generate import KERNEL
from trtplug.kernels.launch import launch_of, slide
from trtplug.kernels.pair_catalog import PairTactic
from trtplug.kernels.pair_generate import PAIR_KERNEL
from trtplug.kernels.pair_launch import launch_pair
from trtplug.kernels.pair_problem import PairProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.kernels.launch import Launch
    from trtplug.kernels.problem import Problem
    from trtplug.kernels.tactic import Tactic


def kernel_name(problem: Problem | PairProblem) -> str:
    """Name of the kernel in its PTX."""
    return PAIR_KERNEL if isinstance(problem, PairProblem) else KERNEL


def launch_on(
    tactic: Tactic | PairTactic, problem: Problem | PairProblem, sizes: Sequence[Any]
) -> Launch:
    """Launch at an input [batch, channels, height, width].

    Raises:
        TypeError: a tactic of one op and a problem of the other.
    """
    if isinstance(tactic, PairTactic) and isinstance(problem, PairProblem):
        return launch_pair(tactic, problem, sizes)
    if isinstance(tactic, PairTactic) or isinstance(problem, PairProblem):
        raise TypeError(f"{tactic.name} is no tactic for {type(problem).__name__}")
    return launch_of(tactic, problem, sizes)


def output_on(problem: Problem | PairProblem, sizes: Sequence[Any]) -> tuple[Any, int, Any, Any]:
    """Sizes of the output [batch, outputs, rows, columns] at an input."""
    first = problem.depthwise if isinstance(problem, PairProblem) else problem
    rows, columns = (slide(sizes[2 + axis], axis, first) for axis in (0, 1))
    return (sizes[0], problem.outputs, rows, columns)


def check_range(problem: Problem | PairProblem, least: Sequence[int], most: Sequence[int]) -> None:
    """Refuses an input that a kernel was not made for: sizes that it takes as fixed are fixed.

    Args:
        problem: what the kernels were made for.
        least: the smallest [batch, channels, height, width] that is to be run.
        most: the largest.

    Raises:
        ValueError: outside the problem's range.
    """
    x = problem.x
    inside = len(least) == len(most) == len(x.min) and all(
        low <= a and b <= high for low, a, b, high in zip(x.min, least, most, x.max, strict=True)
    )
    if not inside:
        raise ValueError(
            f"kernels for inputs {list(x.min)} to {list(x.max)} met {list(least)} to {list(most)}"
        )
