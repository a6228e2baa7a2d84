"""Weights and bias as a tactic's kernel reads them.

Weights are packed once, when an engine is made. An implicit GEMM reads them as the very tiles that
it wants in shared memory, swizzle and all, so that a kernel copies them in a straight line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.kernels.generate import bundle_of
from trtplug.kernels.launch import bundles_of, divide_up
from trtplug.kernels.problem import Problem, padded
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic, Tile

if TYPE_CHECKING:
    from numpy.typing import NDArray


if TYPE_CHECKING:
    Array = NDArray[Any]


def pack_weights(tactic: Tactic, problem: Problem, weights: Array) -> Array:
    """Weights [outputs, channels / group, kernel height, kernel width] as the kernel reads them.

    Any type of element goes; what is filled up is zero.
    """
    match tactic:
        case Gemm():
            return _pack_tiles(tactic.tile, _by_tap(problem, weights))
        case Stem():
            flat = weights.reshape(1, problem.outputs, -1)
            return _pack_tiles(tactic.tile, flat)
        case Depthwise():
            taps = weights.reshape(problem.channels, problem.taps).T
            return _fill(taps, (problem.taps, padded(problem.channels)))
        case Direct():
            return _pack_bundles(tactic, problem, weights)


def pack_bias(tactic: Tactic, problem: Problem, bias: Array) -> Array:
    """The bias [outputs] in FP32, filled up with zeros to what a kernel reads of it."""
    wide = bias.astype(np.float32)
    match tactic:
        case Gemm() | Stem():
            groups = problem.attributes.group
            columns = divide_up(problem.group_outputs, tactic.tile.columns) * tactic.tile.columns
            return _fill(wide.reshape(groups, -1), (groups, columns)).reshape(-1)
        case Depthwise():
            return _fill(wide, (padded(problem.outputs),))
        case Direct():
            return _fill(wide, (bundles_of(tactic, problem) * bundle_of(tactic, problem),))


def _by_tap(problem: Problem, weights: Array) -> Array:
    """[group, outputs / group, tap * padded channels], the channels innermost."""
    groups, inner = problem.attributes.group, problem.group_channels
    last = weights.reshape(groups, problem.group_outputs, inner, problem.taps).swapaxes(2, 3)
    filled = _fill(last, (*last.shape[:3], padded(inner)))
    return filled.reshape(groups, problem.group_outputs, -1)


def _pack_tiles(tile: Tile, rows: Array) -> Array:
    """[group, outputs, depth] as [group, column tile, depth tile, tile.columns, tile.depth]."""
    groups, outputs, depth = rows.shape
    across, deep = divide_up(outputs, tile.columns), divide_up(depth, tile.depth)
    filled = _fill(rows, (groups, across * tile.columns, deep * tile.depth))
    chunks = filled.reshape(groups, across, tile.columns, deep, tile.depth // 8, 8)
    tiles = chunks.transpose(0, 1, 3, 2, 4, 5)
    places = _swizzle(tile)[None, None, None, :, :, None]
    swizzled = np.empty_like(tiles)
    np.put_along_axis(swizzled, np.broadcast_to(places, tiles.shape), tiles, axis=4)
    return swizzled.reshape(groups, across, deep, tile.columns, tile.depth)


def _swizzle(tile: Tile) -> Array:
    """Where chunk c of row r lies in its row; the same as `swizzled` in plugins/common/copy.cuh."""
    chunks = tile.depth // 8
    row, chunk = np.indices((tile.columns, chunks))
    mask = (row >> 1) & 3 if chunks == 4 else row & 7
    return np.asarray(chunk ^ mask)


def _pack_bundles(tactic: Direct, problem: Problem, weights: Array) -> Array:
    """[bundle, channel, tap, output] for LINEAR, [bundle, tap, channel, output] for HWC8."""
    bundle = bundle_of(tactic, problem)
    flat = weights.reshape(problem.outputs, problem.group_channels, problem.taps)
    filled = _fill(flat, (bundles_of(tactic, problem) * bundle, *flat.shape[1:]))
    order = (0, 2, 3, 1) if tactic.layout == "LINEAR" else (0, 3, 2, 1)
    return np.ascontiguousarray(
        filled.reshape(-1, bundle, problem.group_channels, problem.taps).transpose(order)
    )


def _fill(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with zeros after it on each axis, up to `shape`."""
    filled = np.zeros(shape, array.dtype)
    filled[tuple(slice(n) for n in array.shape)] = array
    return filled
