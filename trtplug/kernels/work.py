"""What one block of a tactic does for a problem, in numbers: for predictions.

Bytes are those of a block that lies inside the image, as the emulator counts them.
"""

from __future__ import annotations

from dataclasses import dataclass

from trtplug.kernels.generate import bundle_of, x_dtype
from trtplug.kernels.launch import divide_up
from trtplug.kernels.problem import ELEMENT_BYTES, Problem, padded
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic, Tile

WARP = 32
SECTOR_BYTES = 32
"""What global memory moves at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one block does."""

    multiply_adds: int
    shared_bytes: int
    """Through shared memory."""
    l1_bytes: int
    """Loaded through the L1 cache, in whole sectors."""
    l2_bytes: int
    """Copied past the L1 cache."""
    steps: int
    """In depth, one after the other."""


def work_of(tactic: Tactic, problem: Problem) -> Work:
    """The work of a block of `tactic`, which must be legal for the problem."""
    match tactic:
        case Gemm():
            terms = problem.taps * padded(problem.group_channels)
            steps = divide_up(terms, tactic.tile.depth)
            return gemm_work(tactic.tile, steps, l2_bytes=tactic.tile.stage_bytes * steps)
        case Stem():
            return _stem(tactic, problem)
        case Depthwise():
            return _depthwise(tactic, problem)
        case Direct():
            return _direct(tactic, problem)


def gemm_work(tile: Tile, steps: int, l1_bytes: int = 0, l2_bytes: int = 0) -> Work:
    """What a block does for a tile, in that many steps in depth."""
    # A warp reads its rows and columns of both operands in each step; all is written once.
    warps = tile.threads // WARP
    read = warps * (tile.warp_rows + tile.warp_columns) * tile.depth * 2
    return Work(
        multiply_adds=tile.rows * tile.columns * tile.depth * steps,
        shared_bytes=(read + tile.stage_bytes) * steps,
        l1_bytes=l1_bytes,
        l2_bytes=l2_bytes,
        steps=steps,
    )


def _stem(tactic: Stem, problem: Problem) -> Work:
    """A thread gathers its window: a warp's loads are as many sectors as the stride spreads."""
    tile, terms = tactic.tile, problem.taps * problem.channels
    steps = divide_up(terms, tile.depth)
    size = ELEMENT_BYTES[x_dtype(tactic, problem)]
    sectors = _spread_sectors(size * problem.attributes.strides[1], size)
    weights = tile.columns * tile.depth * 2 * steps
    loads = terms * tile.threads // WARP * sectors * SECTOR_BYTES
    return gemm_work(tile, steps, l1_bytes=loads + weights)


def _depthwise(tactic: Depthwise, problem: Problem) -> Work:
    """A thread loads 16 bytes for each tap of its outputs' span; pixels share their weights."""
    a = problem.attributes
    across = (tactic.across - 1) * a.strides[1] + (a.kernel_shape[1] - 1) * a.dilations[1] + 1
    read = min(across, tactic.across * a.kernel_shape[1])
    lanes = read * WARP + a.kernel_shape[1] * min(WARP, padded(problem.channels) // 8)
    return Work(
        multiply_adds=tactic.threads * tactic.across * 8 * problem.taps,
        shared_bytes=0,
        l1_bytes=a.kernel_shape[0] * lanes * 16 * (tactic.threads // WARP),
        l2_bytes=0,
        steps=a.kernel_shape[0],
    )


def _direct(tactic: Direct, problem: Problem) -> Work:
    """Each term is one element of x for each thread, and one bundle of weights for all of them."""
    terms = problem.taps * problem.group_channels
    bundle, size = bundle_of(tactic, problem), ELEMENT_BYTES[problem.dtype]
    lanes = padded(problem.channels) if tactic.layout == "HWC8" else 1
    sectors = _spread_sectors(size * lanes * problem.attributes.strides[1], size)
    warps = tactic.threads // WARP
    return Work(
        multiply_adds=tactic.threads * bundle * terms,
        shared_bytes=0,
        l1_bytes=warps * terms * (sectors + 1) * SECTOR_BYTES,
        l2_bytes=0,
        steps=terms,
    )


def _spread_sectors(step_bytes: int, size: int) -> int:
    """Sectors of a warp's load of elements of `size` bytes that lie `step_bytes` apart."""
    return min(WARP, -(-((WARP - 1) * step_bytes + size) // SECTOR_BYTES))
