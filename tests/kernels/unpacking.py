"""The way back from packed weights and biases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.kernels.generate import bundle_of
from trtplug.kernels.launch import divide_up
from trtplug.kernels.packing import _swizzle
from trtplug.kernels.pair_packing import _HALF
from trtplug.kernels.problem import Problem, padded
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic, Tile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem

    Array = NDArray[Any]


def unpack_weights(tactic: Tactic, problem: Problem, packed: Array) -> Array:
    """The inverse of `pack_weights`."""
    shape = problem.weight_shape
    match tactic:
        case Gemm():
            groups = problem.attributes.group
            depth = problem.taps * padded(problem.group_channels)
            flat = _unpack_tiles(tactic.tile, packed, groups, problem.group_outputs, depth)
            by_tap = flat.reshape(groups, problem.group_outputs, *shape[2:], -1)
            return by_tap[..., : shape[1]].transpose(0, 1, 4, 2, 3).reshape(shape)
        case Stem():
            depth = problem.channels * problem.taps
            return _unpack_tiles(tactic.tile, packed, 1, problem.outputs, depth).reshape(shape)
        case Depthwise():
            return packed[:, : problem.channels].T.reshape(shape)
        case Direct():
            return _unpack_bundles(tactic, problem, packed)


def _unpack_tiles(tile: Tile, packed: Array, groups: int, outputs: int, depth: int) -> Array:
    """The inverse of `_pack_tiles`."""
    across, deep = divide_up(outputs, tile.columns), divide_up(depth, tile.depth)
    swizzled = packed.reshape(groups, across, deep, tile.columns, tile.depth // 8, 8)
    places = _swizzle(tile)[None, None, None, :, :, None]
    tiles = np.take_along_axis(swizzled, np.broadcast_to(places, swizzled.shape), axis=4)
    rows = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(groups, across * tile.columns, -1)
    return rows[:, :outputs, :depth]


def _unpack_bundles(tactic: Direct, problem: Problem, packed: Array) -> Array:
    """The inverse of `_pack_bundles`."""
    bundle = bundle_of(tactic, problem)
    inner = (problem.group_channels, problem.taps)
    if tactic.layout == "LINEAR":
        filled = packed.reshape(-1, *inner, bundle).transpose(0, 3, 1, 2)
    else:
        filled = packed.reshape(-1, *inner[::-1], bundle).transpose(0, 3, 2, 1)
    return filled.reshape(-1, *inner)[: problem.outputs].reshape(problem.weight_shape)


def unpack_pair(
    tactic: PairTactic, problem: PairProblem, packed: tuple[Array, Array]
) -> tuple[Array, Array]:
    """The inverse of `pack_pair`."""
    first = unpack_weights(tactic.first, problem.depthwise, packed[0])
    return first, unpack_weights(tactic.second, problem.pointwise, packed[1])


def unpack_pair_biases(problem: PairProblem, packed: tuple[Array, Array]) -> tuple[Array, Array]:
    """The inverse of `pack_pair_biases`, in FP32."""
    first = packed[0].reshape(2, -1, _HALF).swapaxes(0, 1).reshape(-1)
    return first[: problem.channels], packed[1][: problem.outputs]
