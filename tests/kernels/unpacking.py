"""The way back from packed weights and biases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.kernels.depthwise import Depthwise
from trtplug.kernels.direct import Direct
from trtplug.kernels.family import divide_up
from trtplug.kernels.gemm import Gemm, Tile, swizzle
from trtplug.kernels.pair import HALF_CHUNK, PairTactic
from trtplug.kernels.problem import padded
from trtplug.kernels.stem import Stem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtplug.kernels.family import AnyTactic
    from trtplug.kernels.problem import KernelProblem

    Array = NDArray[Any]


def unpack_weights(tactic: AnyTactic, problem: Any, packed: Array, conv: int = 0) -> Array:
    """The inverse of `Tactic.pack_weights`."""
    shape = problem.convs[conv].weight_shape
    match tactic:
        case PairTactic():
            return unpack_weights(tactic.parts[conv], problem.convs[conv], packed)
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
    raise AssertionError(tactic)


def unpack_bias(tactic: AnyTactic, problem: Any, packed: Array, conv: int = 0) -> Array:
    """The inverse of `Tactic.pack_bias`, in FP32."""
    if isinstance(tactic, PairTactic) and conv == 0:
        packed = packed.reshape(2, -1, HALF_CHUNK).swapaxes(0, 1).reshape(-1)
    groups = 1 if isinstance(tactic, (Depthwise, Direct, PairTactic)) else problem.attributes.group
    each = problem.convs[conv].outputs // groups
    return packed.reshape(groups, -1)[:, :each].reshape(-1)


def _unpack_tiles(tile: Tile, packed: Array, groups: int, outputs: int, depth: int) -> Array:
    """The inverse of `pack_tiles`."""
    across, deep = divide_up(outputs, tile.columns), divide_up(depth, tile.depth)
    swizzled = packed.reshape(groups, across, deep, tile.columns, tile.depth // 8, 8)
    places = swizzle(tile)[None, None, None, :, :, None]
    tiles = np.take_along_axis(swizzled, np.broadcast_to(places, swizzled.shape), axis=4)
    rows = tiles.transpose(0, 1, 3, 2, 4, 5).reshape(groups, across * tile.columns, -1)
    return rows[:, :outputs, :depth]


def _unpack_bundles(tactic: Direct, problem: KernelProblem, packed: Array) -> Array:
    """The inverse of `Direct.pack_weights`."""
    bundle = tactic.bundle(problem)
    inner = (problem.group_channels, problem.taps)
    if tactic.layout == "LINEAR":
        filled = packed.reshape(-1, *inner, bundle).transpose(0, 3, 1, 2)
    else:
        filled = packed.reshape(-1, *inner[::-1], bundle).transpose(0, 3, 2, 1)
    return filled.reshape(-1, *inner)[: problem.outputs].reshape(problem.weight_shape)
