"""Special registers: where a thread stands in its block, and the block in its grid."""

from __future__ import annotations

import numpy as np

from trtplug.emulator.values import U32, U64, WARP, Array, constant

Size3 = tuple[int, int, int]


def special_register(name: str, grid: Size3, block: Size3, lane: Array, ids: Array) -> Array:
    """What a special register holds.

    Args:
        name: such as `%tid.x`.
        grid: blocks along x, y, z.
        block: threads along x, y, z.
        lane: [1, threads], number of the thread within its block.
        ids: [blocks], number of the block within the grid.
    """
    if name == "%laneid":
        return (lane % WARP).astype(U32)
    if name == "%warpid":
        return (lane // WARP).astype(U32)
    if name.startswith("%lanemask"):
        return _lane_mask(name[-2:], lane % WARP)
    register, axis = name[1:].split(".")
    i = "xyz".index(axis)
    if register == "ntid":
        return constant(block[i], 4)
    if register == "nctaid":
        return constant(grid[i], 4)
    sizes, number = (block, lane) if register == "tid" else (grid, ids[:, None])
    before = int(np.prod(sizes[:i], dtype=np.int64))
    value = number // before % sizes[i]
    return constant(0, 4) if sizes[i] == 1 else value.astype(U32)


def _lane_mask(which: str, lane: Array) -> Array:
    one = np.left_shift(U64.type(1), lane.astype(U64))
    below = one - U64.type(1)
    masks = {"eq": one, "lt": below, "le": below | one, "gt": ~(below | one), "ge": ~below}
    return np.asarray(masks[which].astype(U32))
