"""How a kernel is launched: grid and block as plain arithmetic on the input's sizes.

Only `+ - * //` are used on the sizes, so that TensorRT's symbolic integers work as well as ints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.kernels.generate import bundle_of, threads_of
from trtplug.kernels.problem import Problem, padded
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic
from trtplug.tensor import window_positions

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Grid and block; a size may be a symbolic integer."""

    grid: tuple[Any, Any, Any]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    """Dynamic shared memory: none of our kernels takes any."""


def launch_of(tactic: Tactic, problem: Problem, sizes: Sequence[Any]) -> Launch:
    """Launch at an input [batch, channels, height, width]."""
    rows, columns = (slide(sizes[2 + axis], axis, problem) for axis in (0, 1))
    pixels = sizes[0] * rows * columns
    block = (threads_of(tactic), 1, 1)
    grid: tuple[Any, Any, Any]
    match tactic:
        case Gemm() | Stem():
            tile = tactic.tile
            across = divide_up(problem.group_outputs, tile.columns)
            grid = (divide_up(pixels, tile.rows), across, problem.attributes.group)
        case Depthwise():
            bundles = sizes[0] * rows * divide_up(columns, tactic.across)
            grid = (divide_up(bundles * (padded(problem.channels) // 8), tactic.threads), 1, 1)
        case Direct():
            grid = (divide_up(pixels, tactic.threads), bundles_of(tactic, problem), 1)
    return Launch(grid=grid, block=block)


def bundles_of(tactic: Direct, problem: Problem) -> int:
    """Bundles of outputs of a direct kernel; in HWC8 those that are only padding count."""
    outputs = problem.outputs if tactic.layout == "LINEAR" else padded(problem.outputs)
    return int(divide_up(outputs, bundle_of(tactic, problem)))


def divide_up(value: Any, by: int) -> Any:  # noqa: ANN401 - an int, or a symbolic integer
    """The quotient, rounded up."""
    return (value + (by - 1)) // by


def slide(size: Any, axis: int, problem: Problem) -> Any:  # noqa: ANN401 - as `divide_up`
    """Output size along an axis."""
    a = problem.attributes
    return window_positions(size, a.reach(axis), a.strides[axis])
