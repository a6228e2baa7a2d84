"""`ldmatrix` and `mma`: fragments of a warp to matrices and back.

Each register of a fragment holds, for lane l with g = l / 4 and t = l % 4, `e` elements that lie
side by side along k (e = 2 for fp16 and bf16, 1 for tf32, 4 for int8): of A, row g (+ 8 in odd
registers), k = e t (+ 4 e in the upper two); of B, column g and the same k. The accumulators hold
columns 2 t and 2 t + 1 of row g, then of row g + 8. (PTX ISA, "Matrix fragments for mma".)

The `mma` of a block that share fragments are run together: the fragments of a 64 x 64 warp tile are
one matrix product of each warp, not 32. Sums are in fp32 in NumPy's order; hardware adds in an
order of its own and truncates, so that last bits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.access import fetch_shared, place
from trtplug.emulator.layout import Layout, unsupported
from trtplug.emulator.values import (
    F16,
    F32,
    S8,
    S32,
    U8,
    U32,
    WARP,
    Array,
    Type,
    bf16_to_f32,
    read_as,
)
from trtplug.emulator.warp import whole

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step
    from trtplug.emulator.ptx import Instruction

_ROW_BYTES = 16
_MATRIX_ROWS = 8


def load_matrix(ins: Instruction, lay: Layout) -> Step:
    """`ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].shared.b16`."""
    parts = [p for p in ins.parts if p not in ("trans", "shared::cta")]
    if parts[:3] != ["sync", "aligned", "m8n8"] or parts[-1] != "b16" or len(parts) < 5:
        raise unsupported(ins)
    count = {"x1": 1, "x2": 2, "x4": 4}.get(parts[3], 0)
    results = lay.results(ins, ins.operands[0])
    if len(results) != count or not {*parts[4:-1]} <= {"shared"}:
        raise unsupported(ins)
    where = place(ins, lay, ins.operands[1], "shared")
    turned = "trans" in ins.parts
    everyone = lay.constant(-1, 4)

    def step(m: Machine) -> None:
        whole(m, m.registers[everyone], ins.line, "ldmatrix")
        running, given = m.mask, where.address(m)
        if count < 4:
            first = (m.lane & (WARP - 1)) < count * _MATRIX_ROWS
            m.mask = first if running is None else first & running
        rows = fetch_shared(m, given, _ROW_BYTES, ins.line)
        m.mask = running
        for d, value in zip(results, _matrices(rows, m.threads, count, turned), strict=True):
            m.registers[d] = value

    return step


def _matrices(rows: Array, threads: int, count: int, turned: bool) -> list[Array]:
    """Rows of 16 bytes, [blocks, threads], as one register a matrix."""
    full = np.ascontiguousarray(np.broadcast_to(rows, (len(rows), threads)))
    out = []
    if not turned:
        words = full.view(U32).reshape(len(rows), -1, WARP // _MATRIX_ROWS, WARP)
        out = [words[:, :, j].reshape(len(rows), threads) for j in range(count)]
    else:
        halves = full.view(np.uint16).reshape(len(rows), -1, WARP // _MATRIX_ROWS, 8, 8)
        for j in range(count):
            turned_matrix = np.ascontiguousarray(halves[:, :, j].swapaxes(-1, -2))
            out.append(turned_matrix.view(U32).reshape(len(rows), threads))
    return out


# mma.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one spelling of `mma` multiplies."""

    k: int
    elements: int
    """Elements of A and B in a register."""
    decode_a: Callable[[Array], Array]
    """uint32 [...] to numbers [..., elements]."""
    decode_b: Callable[[Array], Array]
    sums: str
    """`f32`, `f16` or `s32`: type of the accumulators."""

    @property
    def upper(self) -> int:
        """Registers along k."""
        return self.k // (4 * self.elements)


def _fp16(x: Array) -> Array:
    return x.view(F16).reshape(*x.shape, 2).astype(F32)


def _bf16(x: Array) -> Array:
    return bf16_to_f32(x.view(np.uint16)).reshape(*x.shape, 2)


def _tf32(x: Array) -> Array:
    """The low 13 bits are ignored."""
    return np.asarray((x & U32.type(0xFFFFE000)).view(F32)[..., None])


def _bytes(dtype: Type) -> Callable[[Array], Array]:
    return lambda x: x.view(dtype).reshape(*x.shape, 4).astype(F32)


_DECODERS: dict[str, tuple[int, Callable[[Array], Array]]] = {
    "f16": (2, _fp16), "bf16": (2, _bf16), "tf32": (1, _tf32),
    "s8": (4, _bytes(S8)), "u8": (4, _bytes(U8)),
}  # fmt: skip
_DEPTHS = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8), "s8": (16, 32), "u8": (16, 32)}


def shape_of(ins: Instruction) -> Shape:
    """What an `mma` multiplies.

    Raises:
        PtxError: a spelling that is not known.
    """
    parts = [p for p in ins.parts if p != "satfinite"]
    if len(parts) != 9 or parts[:2] != ["sync", "aligned"] or parts[3:5] != ["row", "col"]:
        raise unsupported(ins)
    size, sums, of_a, of_b, start = parts[2], parts[5], parts[6], parts[7], parts[8]
    k = int(size[6:]) if size.startswith("m16n8k") else 0
    if of_a not in _DECODERS or of_b not in _DECODERS or k not in _DEPTHS[of_a]:
        raise unsupported(ins)
    elements, decode_a = _DECODERS[of_a]
    allowed = ("s32",) if elements == 4 else ("f32", "f16") if of_a == "f16" else ("f32",)
    if sums != start or sums not in allowed or _DECODERS[of_b][0] != elements:
        raise unsupported(ins)
    return Shape(k=k, elements=elements, decode_a=decode_a, decode_b=_DECODERS[of_b][1], sums=sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One `mma`, by register numbers."""

    results: tuple[int, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    start: tuple[int, ...]
    line: int


def product_of(ins: Instruction, lay: Layout) -> Product:
    """Registers of an `mma`.

    Raises:
        PtxError: vectors that do not fit its shape.
    """
    shape = shape_of(ins)
    results = lay.results(ins, ins.operands[0])
    a, b, start = (lay.vector(ins, o, 4) for o in ins.operands[1:4])
    sums = 2 if shape.sums == "f16" else 4
    if (len(results), len(a), len(b)) != (sums, 2 * shape.upper, shape.upper):
        raise unsupported(ins, "operands")
    return Product(results=results, a=a, b=b, start=start, line=ins.line)


def multiply(shape: Shape, products: tuple[Product, ...], everyone: int) -> Step:
    """A step that runs the `mma` of one group, none of which reads another's result."""
    parts = _rectangles(products)

    def step(m: Machine) -> None:
        whole(m, m.registers[everyone], products[0].line, "mma")
        for part in parts:
            _run(m, shape, part)

    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rectangle:
    """Products of each A fragment with each B fragment."""

    a: tuple[tuple[int, ...], ...]
    b: tuple[tuple[int, ...], ...]
    products: tuple[tuple[Product, int, int], ...]
    """Each with its place among a and b."""


def _rectangles(products: tuple[Product, ...]) -> tuple[_Rectangle, ...]:
    """Split products so that each part is all A fragments times all B fragments."""
    by_a: dict[tuple[int, ...], list[Product]] = {}
    for product in products:
        by_a.setdefault(product.a, []).append(product)
    by_columns: dict[tuple[tuple[int, ...], ...], list[Product]] = {}
    for row in by_a.values():
        columns = tuple(sorted({p.b for p in row}))
        by_columns.setdefault(columns, []).extend(row)
    out = []
    for columns, members in by_columns.items():
        rows = tuple(dict.fromkeys(p.a for p in members))
        placed = tuple((p, rows.index(p.a), columns.index(p.b)) for p in members)
        out.append(_Rectangle(a=rows, b=columns, products=placed))
    return tuple(out)


def _run(m: Machine, shape: Shape, part: _Rectangle) -> None:
    a = _stacked(m, part.a, shape.decode_a, shape)
    b = _stacked(m, part.b, shape.decode_b, shape)
    blocks = a.shape[3]
    # [A fragments, k halves, row halves, blocks, warps, g, t, e] to [blocks, warps, rows, k].
    left = a.transpose(3, 4, 0, 2, 5, 1, 6, 7).reshape(-1, len(part.a) * 16, shape.k)
    right = b.transpose(3, 4, 0, 2, 5, 1, 6, 7).reshape(-1, len(part.b) * 8, shape.k)
    total = np.matmul(left, right.transpose(0, 2, 1))
    split = total.reshape(blocks, -1, len(part.a), 2, 8, len(part.b), 4, 2)
    # To [A fragments, row half, B fragments, column, blocks, warps, g, t]: registers in one piece.
    sums = np.ascontiguousarray(split.transpose(2, 3, 5, 7, 0, 1, 4, 6))
    sums = sums.reshape(len(part.a), 2, len(part.b), 2, blocks, m.threads)
    for product, i, j in part.products:
        _accumulate(m, shape, product, sums[i, :, j])


def _stacked(
    m: Machine,
    fragments: tuple[tuple[int, ...], ...],
    decode: Callable[[Array], Array],
    shape: Shape,
) -> Array:
    """[fragments, k halves, row halves, blocks, warps, 8, 4, elements], as numbers."""
    registers = [read_as(m.registers[r], U32) for fragment in fragments for r in fragment]
    rows = 2 if len(fragments[0]) == 2 * shape.upper else 1
    bits = np.empty((len(registers), m.blocks, m.threads), U32)
    for i, register in enumerate(registers):
        bits[i] = register
    numbers = decode(bits)
    return numbers.reshape(len(fragments), shape.upper, rows, m.blocks, -1, 8, 4, shape.elements)


def _accumulate(m: Machine, shape: Shape, product: Product, sums: Array) -> None:
    """Add [row half, column, blocks, threads] to the accumulators' registers."""
    r = m.registers
    if shape.sums == "f16":
        for half, (d, c) in enumerate(zip(product.results, product.start, strict=True)):
            both = np.empty((*m.lanes, 2), F16)
            before = np.ascontiguousarray(np.broadcast_to(read_as(r[c], U32), m.lanes))
            both[...] = sums[half].transpose(1, 2, 0) + before.view(F16).reshape(*m.lanes, 2)
            r[d] = both.view(U32)[..., 0]
        return
    for i, (d, c) in enumerate(zip(product.results, product.start, strict=True)):
        value = sums[i // 2, i % 2]
        if shape.sums == "s32":
            r[d] = read_as(r[c], S32) + value.astype(S32)
        else:
            r[d] = read_as(r[c], F32) + value
