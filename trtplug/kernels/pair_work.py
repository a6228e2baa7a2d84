"""What one block of a pair's kernel does, in numbers: for predictions.

Bytes are those of a block that lies inside the image, as the emulator counts them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trtplug.kernels.launch import divide_up
from trtplug.kernels.problem import padded
from trtplug.kernels.work import WARP, Work, gemm_work

if TYPE_CHECKING:
    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem


def pair_work_of(tactic: PairTactic, problem: PairProblem) -> Work:
    """The work of a block in its product, and all the bytes that it moves.

    Each tap of what lies between is loaded through the L1 cache, for each pixel; each warp reads
    the weights and biases of that part for itself. Weights of the product are copied.
    """
    tile, channels = tactic.tile, padded(problem.channels)
    steps = divide_up(channels, tile.depth)
    taps, warps = problem.depthwise.taps, tile.threads // WARP
    read = channels * 2 * taps * (tile.rows + warps) + channels * 4 * warps
    work = gemm_work(tile, steps, l1_bytes=read, l2_bytes=tile.columns * tile.depth * 2 * steps)
    # Sums are often short, so the end counts too: the output goes out through shared memory, and a
    # residual comes in through it.
    ending = tile.rows * tile.columns * (8 if problem.has_residual else 4)
    return replace(work, shared_bytes=work.shared_bytes + ending)


def made_between(tactic: PairTactic, problem: PairProblem) -> int:
    """Multiply-adds of a block for what lies between the convolutions."""
    return tactic.tile.rows * padded(problem.channels) * problem.depthwise.taps
