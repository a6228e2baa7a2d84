"""How a pair's kernel is launched; see `trtplug.kernels.launch` for what may be a size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.kernels.launch import Launch, divide_up, slide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem


def launch_pair(tactic: PairTactic, problem: PairProblem, sizes: Sequence[Any]) -> Launch:
    """Launch at an input [batch, channels, height, width]."""
    rows, columns = (slide(sizes[2 + axis], axis, problem.depthwise) for axis in (0, 1))
    tile = tactic.tile
    grid = (
        divide_up(sizes[0] * rows * columns, tile.rows),
        divide_up(problem.outputs, tile.columns),
        1,
    )
    return Launch(grid=grid, block=(tile.threads, 1, 1))
