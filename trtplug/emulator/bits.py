"""Instructions on bits: fields, bytes, tables, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.integer import Function, apply, simple
from trtplug.emulator.layout import Builder, Layout, one_type, unsupported
from trtplug.emulator.values import S64, U8, U32, U64, Array

if TYPE_CHECKING:
    from trtplug.emulator.machine import Step
    from trtplug.emulator.ptx import Instruction


def extract(ins: Instruction, lay: Layout) -> Step:
    """`bfe`: bits `b` up to `b + c`, the sign filled in for signed types."""
    _, _, dtype = one_type(ins)
    bits = 8 * dtype.itemsize

    def function(a: Array, b: Array, c: Array) -> Array:
        start, count = (b & 255).astype(S64), (c & 255).astype(S64)
        count = np.minimum(count, np.maximum(bits - start, 0))
        up = np.minimum(np.maximum(bits - start - count, 0), bits - 1)
        down = np.minimum(bits - count, bits - 1)
        moved = np.right_shift(np.left_shift(a, up.astype(dtype)), down.astype(dtype))
        return np.asarray(np.where(count == 0, dtype.type(0), moved))

    a = lay.operand(ins, ins.operands[1], dtype.itemsize)
    rest = tuple(lay.operand(ins, o, 4) for o in ins.operands[2:])
    return apply(function, (dtype, U32, U32), lay.register(ins, ins.operands[0]), (a, *rest))


def insert(ins: Instruction, lay: Layout) -> Step:
    """`bfi d, a, b, c, e`: the low `e` bits of a put into b at bit c."""
    _, _, dtype = one_type(ins)
    bits = 8 * dtype.itemsize
    all_ones = dtype.type((1 << bits) - 1)

    def function(a: Array, b: Array, c: Array, e: Array) -> Array:
        start, count = np.minimum(c & 255, bits), np.minimum(e & 255, bits)
        count = np.minimum(count, bits - start)
        ones = np.where(count == 0, 0, all_ones >> np.minimum(bits - count, bits - 1).astype(dtype))
        mask = (ones.astype(dtype) << np.minimum(start, bits - 1).astype(dtype)).astype(dtype)
        placed = (a << np.minimum(start, bits - 1).astype(dtype)) & mask
        return np.asarray((b & ~mask) | placed)

    wide = [lay.operand(ins, o, dtype.itemsize) for o in ins.operands[1:3]]
    narrow = [lay.operand(ins, o, 4) for o in ins.operands[3:5]]
    d = lay.register(ins, ins.operands[0])
    return apply(function, (dtype, dtype, U32, U32), d, (*wide, *narrow))


def permute(ins: Instruction, lay: Layout) -> Step:
    """`prmt.b32 d, a, b, c`: four bytes chosen out of eight."""
    if ins.parts != ("b32",):
        raise unsupported(ins)

    def function(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(U64) | (b.astype(U64) << U64.type(32))
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), U32)
        for i in range(4):
            pick = (c >> U32.type(4 * i)) & U32.type(15)
            byte = (both >> ((pick & U32.type(7)) * U32.type(8)).astype(U64)).astype(U8)
            sign = np.where(byte & U8.type(128), U8.type(255), U8.type(0))
            byte = np.where(pick & U32.type(8), sign, byte)
            out |= byte.astype(U32) << U32.type(8 * i)
        return out

    return simple(ins, lay, function, U32, 3)


def logic(ins: Instruction, lay: Layout) -> Step:
    """`lop3.b32 d, a, b, c, table`."""
    if ins.parts != ("b32",):
        raise unsupported(ins)
    table = lay.initial[lay.operand(ins, ins.operands[4], 4)]
    bits = int(table[0, 0])

    def function(a: Array, b: Array, c: Array) -> Array:
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), U32)
        for i in range(8):
            if bits >> i & 1:
                x = a if i & 4 else ~a
                y = b if i & 2 else ~b
                out |= x & y & (c if i & 1 else ~c)
        return out

    args = tuple(lay.operand(ins, o, 4) for o in ins.operands[1:4])
    return apply(function, (U32,) * 3, lay.register(ins, ins.operands[0]), args)


def funnel(ins: Instruction, lay: Layout) -> Step:
    """`shf`: a shift over the pair (b, a)."""
    if len(ins.parts) != 3 or ins.parts[0] not in "lr" or ins.parts[2] != "b32":
        raise unsupported(ins)
    left, clamp = ins.parts[0] == "l", ins.parts[1] == "clamp"

    def function(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(U64) | (b.astype(U64) << U64.type(32))
        by = (np.minimum(c, 32) if clamp else c & U32.type(31)).astype(U64)
        if left:
            return np.asarray(((both << by) >> U64.type(32)).astype(U32))
        return np.asarray(both >> by).astype(U32)

    return simple(ins, lay, function, U32, 3)


def count_bits(ins: Instruction, lay: Layout) -> Step:
    """`popc`, `clz`, `brev`."""
    _, _, dtype = one_type(ins)
    bits = 8 * dtype.itemsize

    def spread(a: Array) -> Array:
        planes = np.arange(bits, dtype=dtype)
        return np.asarray((a[..., None] >> planes) & dtype.type(1))

    def popc(a: Array) -> Array:
        return np.asarray(spread(a).sum(axis=-1).astype(U32))

    def clz(a: Array) -> Array:
        top = np.where(spread(a) != 0, np.arange(1, bits + 1), 0).max(axis=-1)
        return np.asarray((bits - top).astype(U32))

    def brev(a: Array) -> Array:
        planes = np.arange(bits - 1, -1, -1).astype(dtype)
        return np.asarray(np.bitwise_or.reduce(spread(a) << planes, axis=-1))

    functions: dict[str, Function] = {"popc": popc, "clz": clz, "brev": brev}
    return simple(ins, lay, functions[ins.op], dtype, 1)


BUILDERS: dict[str, Builder] = {
    "bfe": extract, "bfi": insert, "prmt": permute, "lop3": logic, "shf": funnel,
    "popc": count_bits, "clz": count_bits, "brev": count_bits,
}  # fmt: skip
