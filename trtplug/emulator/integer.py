"""Integer and bit instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.layout import Builder, Layout, kinds, one_type, unsupported
from trtplug.emulator.values import BOOL, INTEGERS, S64, SCALARS, U8, U32, U64, Array, Type, read_as

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step
    from trtplug.emulator.ptx import Instruction


Function = Callable[..., Array]


def apply(function: Function, dtypes: tuple[Type, ...], result: int, args: tuple[int, ...]) -> Step:
    """A step that sets `result` to a function of other registers, each read as its dtype."""
    if len(args) == 1:
        (only,), (of_only,) = args, dtypes

        def one(m: Machine) -> None:
            m.registers[result] = function(read_as(m.registers[only], of_only))

        return one
    if len(args) == 2:
        (a, b), (of_a, of_b) = args, dtypes

        def two(m: Machine) -> None:
            r = m.registers
            r[result] = function(read_as(r[a], of_a), read_as(r[b], of_b))

        return two

    def many(m: Machine) -> None:
        r = m.registers
        r[result] = function(*[read_as(r[i], t) for i, t in zip(args, dtypes, strict=True)])

    return many


def simple(ins: Instruction, lay: Layout, function: Function, *dtypes: Type) -> Step:
    """A step that sets the first operand to a function of the others, each read as its dtype."""
    if len(ins.operands) != len(dtypes) + 1:
        raise unsupported(ins, "operands")
    read = zip(ins.operands[1:], dtypes, strict=True)
    args = tuple(lay.operand(ins, o, dtype.itemsize) for o, dtype in read)
    return apply(function, dtypes, lay.register(ins, ins.operands[0]), args)


def _divide(a: Array, b: Array) -> Array:
    """Rounded towards zero; all ones where the divisor is zero, as the hardware gives."""
    if a.dtype.kind == "u":
        return np.where(b == 0, a.dtype.type(-1 % (1 << 8 * a.itemsize)), a // np.where(b, b, 1))
    safe = np.where(b == 0, a.dtype.type(1), b)
    floor = a // safe
    short = (floor < 0) & (floor * safe != a)
    return np.asarray(np.where(b == 0, a.dtype.type(-1), floor + short.astype(a.dtype)))


def _remainder(a: Array, b: Array) -> Array:
    return np.where(b == 0, a, a - _divide(a, b) * b)


_TWO: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "div": _divide, "rem": _remainder,
}  # fmt: skip


LOGICAL: dict[str, Function] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def two(ins: Instruction, lay: Layout) -> Step:
    """`add.s32 d, a, b` and its like; predicates for the bitwise ones."""
    if ins.parts == ("pred",):
        return simple(ins, lay, LOGICAL[ins.op], BOOL, BOOL)
    _, _, dtype = one_type(ins)
    return simple(ins, lay, _TWO[ins.op], dtype, dtype)


def unary(ins: Instruction, lay: Layout) -> Step:
    """`neg`, `abs`, `not`."""
    if ins.parts == ("pred",) and ins.op == "not":
        return simple(ins, lay, np.invert, BOOL)
    _, _, dtype = one_type(ins)
    functions: dict[str, Function] = {"neg": np.negative, "abs": np.abs, "not": np.invert}
    return simple(ins, lay, functions[ins.op], dtype)


def high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    if a.itemsize == 4:
        wide = S64 if a.dtype.kind == "i" else U64
        return np.asarray((a.astype(wide) * b.astype(wide)) >> wide.type(32)).astype(a.dtype)
    x, y = a.view(U64), b.view(U64)
    low, shift = U64.type(0xFFFFFFFF), U64.type(32)
    x0, x1, y0, y1 = x & low, x >> shift, y & low, y >> shift
    cross = x1 * y0 + ((x0 * y0) >> shift)
    other = x0 * y1 + (cross & low)
    top = x1 * y1 + (cross >> shift) + (other >> shift)
    if a.dtype.kind == "i":
        top = top - np.where(a < 0, y, U64.type(0)) - np.where(b < 0, x, U64.type(0))
    return np.asarray(top.view(a.dtype))


def multiply(ins: Instruction, lay: Layout) -> Step:
    """`mul` and `mad` of integers: `lo`, `hi` and `wide`."""
    flags, types = kinds(ins, ("lo", "hi", "wide"))
    if len(flags) != 1 or len(types) != 1 or types[0] not in INTEGERS:
        raise unsupported(ins)
    dtype = INTEGERS[types[0]]
    wide = np.dtype(f"{dtype.kind}{2 * dtype.itemsize}") if dtype.itemsize < 8 else dtype

    def widely(a: Array, b: Array) -> Array:
        return np.asarray(np.multiply(a.astype(wide), b.astype(wide)))

    products: dict[str, Function] = {"lo": np.multiply, "hi": high, "wide": widely}
    product = products[next(iter(flags))]
    if ins.op == "mul":
        return simple(ins, lay, product, dtype, dtype)
    third = wide if "wide" in flags else dtype
    return simple(ins, lay, lambda x, y, z: product(x, y) + z, dtype, dtype, third)


def shift(ins: Instruction, lay: Layout) -> Step:
    """`shl` and `shr`; amounts past the width give zero, or the sign."""
    _, _, dtype = one_type(ins)
    bits = 8 * dtype.itemsize

    def left(a: Array, b: Array) -> Array:
        moved = np.left_shift(a, np.minimum(b, bits - 1).astype(a.dtype))
        return np.asarray(
            moved if _all_below(b, bits) else np.where(b < bits, moved, a.dtype.type(0))
        )

    def right(a: Array, b: Array) -> Array:
        moved = np.right_shift(a, np.minimum(b, bits - 1).astype(a.dtype))
        if a.dtype.kind == "i" or _all_below(b, bits):
            return np.asarray(moved)
        return np.asarray(np.where(b < bits, moved, a.dtype.type(0)))

    return simple(ins, lay, left if ins.op == "shl" else right, dtype, U32)


def _all_below(b: Array, bits: int) -> bool:
    return int(b.max()) < bits


def select(ins: Instruction, lay: Layout) -> Step:
    """`selp d, a, b, p`: bits are moved as they are."""
    if len(ins.parts) != 1 or ins.parts[0] not in SCALARS:
        raise unsupported(ins)
    dtype = np.dtype(f"u{SCALARS[ins.parts[0]].itemsize}")
    return simple(ins, lay, lambda a, b, p: np.asarray(np.where(p, a, b)), dtype, dtype, BOOL)


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

    return simple(ins, lay, function, dtype, U32, U32)


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

    return simple(ins, lay, function, dtype, dtype, U32, U32)


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

    return simple(ins, lay, function, U32, U32, U32)


def logic(ins: Instruction, lay: Layout) -> Step:
    """`lop3.b32 d, a, b, c, table`."""
    if ins.parts != ("b32",):
        raise unsupported(ins)

    def function(a: Array, b: Array, c: Array, table: Array) -> Array:
        bits = int(table[0, 0])
        out = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), U32)
        for i in range(8):
            if bits >> i & 1:
                x = a if i & 4 else ~a
                y = b if i & 2 else ~b
                out |= x & y & (c if i & 1 else ~c)
        return out

    return simple(ins, lay, function, U32, U32, U32, U32)


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

    return simple(ins, lay, function, U32, U32, U32)


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
    return simple(ins, lay, functions[ins.op], dtype)


BUILDERS: dict[str, Builder] = {
    "add": two, "sub": two, "min": two, "max": two, "neg": unary, "abs": unary, "mul": multiply,
    "div": two, "rem": two, "and": two, "or": two, "xor": two, "not": unary,
    "mad": multiply, "shl": shift, "shr": shift, "selp": select,
    "bfe": extract, "bfi": insert, "prmt": permute, "lop3": logic, "shf": funnel,
    "popc": count_bits, "clz": count_bits, "brev": count_bits,
}  # fmt: skip
