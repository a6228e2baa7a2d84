"""Runs matrix products, and keeps their sums as matrices until somebody reads a register.

Through a main loop the accumulators go from `mma` to `mma` alone: the products of its rounds are
added up as matrices, and go to the registers once, before the first other instruction that touches
one of them. Sums are in fp32 in the order of the matrix product; hardware adds in an order of its
own and truncates, so that last bits differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.layout import Layout, unsupported
from trtplug.emulator.machine import Sums
from trtplug.emulator.ptx import Instruction
from trtplug.emulator.values import (
    F16,
    F32,
    S8,
    S32,
    U8,
    U16,
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


Decode = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What one spelling of `mma` multiplies."""

    k: int
    elements: int
    """Elements of A and B in a register."""
    decode_a: Decode
    """uint32 [...] to fp32 [..., elements]."""
    decode_b: Decode
    sums: str
    """`f32`, `f16` or `s32`: type of the accumulators."""

    @property
    def upper(self) -> int:
        """Registers along k."""
        return self.k // (4 * self.elements)


_EXPONENT, _REST, _SIGN = U32.type(0x7C00), U32.type(0x7FFF), U32.type(0x8000)
_SCALE = F32.type(2.0**112)
"""What the exponents of fp16 and fp32 differ by, once the bits are shifted."""


def _fp16(x: Array) -> Array:
    """As `astype` gives it, in a third of the time: the bits are moved, infinity and NaN apart."""
    bits = x.view(U16).astype(U32)
    if ((bits & _EXPONENT) == _EXPONENT).any():
        return np.asarray(x.view(F16).reshape(*x.shape, 2).astype(F32))
    size = bits & _REST
    size <<= U32.type(13)
    numbers = size.view(F32)
    numbers *= _SCALE
    bits &= _SIGN
    bits <<= U32.type(16)
    size |= bits
    return np.asarray(numbers.reshape(*x.shape, 2))


def _bf16(x: Array) -> Array:
    return bf16_to_f32(x.view(U16)).reshape(*x.shape, 2)


def _tf32(x: Array) -> Array:
    """The low 13 bits are ignored."""
    return np.asarray((x & U32.type(0xFFFFE000)).view(F32)[..., None])


def _bytes(dtype: Type) -> Decode:
    return lambda x: x.view(dtype).reshape(*x.shape, 4).astype(F32)


_DECODERS: dict[str, tuple[int, Decode]] = {
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


def product_of(ins: Instruction, lay: Layout) -> Product:
    """Registers of an `mma`.

    Raises:
        PtxError: vectors that do not fit its shape.
    """
    shape = shape_of(ins)
    results = lay.results(ins, ins.operands[0])
    a, b, start = (lay.vector(ins, o, 4) for o in ins.operands[1:4])
    sums = 2 if shape.sums == "f16" else 4
    if (len(results), len(a), len(b), len(start)) != (sums, 2 * shape.upper, shape.upper, sums):
        raise unsupported(ins, "operands")
    return Product(results=results, a=a, b=b, start=start)


# Groups of instructions.


@dataclass(slots=True)
class _Group:
    """Instructions that can run at the place of the last of them."""

    members: list[Instruction] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    """Registers of fragments, and of accumulators that are not added to in place."""
    sums: set[str] = field(default_factory=set)

    def takes(self, ins: Instruction) -> bool:
        """Whether an `mma` may join."""
        if ins.op != "mma" or ins.predicate is not None:
            return False
        return not self.members or self.members[0].parts == ins.parts

    def clashes(self, ins: Instruction) -> bool:
        """Whether an instruction must see what the group does, or changes what it reads."""
        reads, writes = set(ins.reads), set(ins.writes)
        if ins.op == "mma" and _in_place(ins) and _exact(ins):
            # To add to a sum of the group once more is no clash, as long as it is the same sum.
            reads -= writes
            known = any(m.operands[0] == ins.operands[0] for m in self.members)
            if known and not reads & self.sums and not writes & self.reads:
                return False
        return bool((reads | writes) & self.sums or writes & self.reads)

    def add(self, ins: Instruction) -> None:
        """Take an `mma` in."""
        writes = set(ins.writes)
        self.members.append(ins)
        self.reads |= set(ins.reads) - (writes if _in_place(ins) else set())
        self.sums |= writes


def _in_place(ins: Instruction) -> bool:
    return ins.operands[0] == ins.operands[3]


def _exact(ins: Instruction) -> bool:
    """Whether sums may be left unrounded between two `mma`: not those of fp16."""
    return ins.parts[-1] != "f16"


def grouped(body: tuple[Instruction, ...]) -> list[tuple[Instruction, ...]]:
    """Instructions in order, `mma` that can run together in one tuple.

    A group ends when something reads or writes a register that a member writes, or writes one that
    a member reads; then, at the latest, it runs.
    """
    out: list[tuple[Instruction, ...]] = []
    group = _Group()
    for ins in body:
        takes = group.takes(ins)
        if group.members and (group.clashes(ins) or (ins.op == "mma" and not takes)):
            out.append(tuple(group.members))
            group = _Group()
        if takes or (ins.op == "mma" and group.takes(ins)):
            group.add(ins)
        else:
            out.append((ins,))
    if group.members:
        out.append(tuple(group.members))
    return out


# From a group to matrix products.

Fragments = tuple[tuple[int, ...], ...]
"""Fragments one after the other along k."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rectangle:
    """Products of each row of A fragments with each row of B fragments."""

    a: tuple[Fragments, ...]
    b: tuple[Fragments, ...]
    results: tuple[tuple[int, ...], ...]
    """Accumulators, [rows of A, rows of B] flattened."""


def rectangles(products: tuple[Product, ...]) -> tuple[Rectangle, ...]:
    """Matrix products equal to a group of `mma`.

    Rows and columns are in order of their accumulators, so that another group over the same
    accumulators gives them the same place.
    """
    chains: dict[tuple[int, ...], tuple[list[tuple[int, ...]], list[tuple[int, ...]]]] = {}
    for p in products:
        a, b = chains.setdefault(p.results, ([], []))
        a.append(p.a)
        b.append(p.b)
    by_row: dict[Fragments, dict[Fragments, tuple[int, ...]]] = {}
    twice: list[Rectangle] = []
    for results in sorted(chains):
        left, right = (tuple(x) for x in chains[results])
        row = by_row.setdefault(left, {})
        if right in row:
            twice.append(Rectangle(a=(left,), b=(right,), results=(results,)))
        else:
            row[right] = results
    by_columns: dict[tuple[Fragments, ...], list[Fragments]] = {}
    for left, row in by_row.items():
        by_columns.setdefault(tuple(row), []).append(left)
    out = [
        Rectangle(
            a=tuple(rows),
            b=columns,
            results=tuple(by_row[left][right] for left in rows for right in columns),
        )
        for columns, rows in by_columns.items()
    ]
    return (*out, *twice)


def multiply(shape: Shape, products: tuple[Product, ...], everyone: int, line: int) -> Step:
    """A step that runs the `mma` of one group."""
    parts = [(part, _order(part)) for part in rectangles(products)]
    moves = [
        (d, c)
        for p in products
        if p.start != p.results
        for d, c in zip(p.results, p.start, strict=True)
    ]

    def step(m: Machine) -> None:
        whole(m, m.registers[everyone], line, "mma")
        m.stores += 1
        if moves:
            settle(m)
            r = m.registers
            for (d, _), value in zip(moves, [r[c] for _, c in moves], strict=True):
                r[d] = value
        for part, order in parts:
            _add(m, shape, part, order)
        if shape.sums != "f32":
            settle(m)

    return step


def _order(part: Rectangle) -> Array:
    rows, columns = len(part.a), len(part.b)
    places = np.arange(rows * columns * 128).reshape(rows, 2, 8, columns, 4, 2)
    # To [A rows, B rows, row half, column of two, g, t].
    return places.transpose(0, 3, 1, 5, 2, 4).ravel()


def _add(m: Machine, shape: Shape, part: Rectangle, order: Array) -> None:
    left = _matrix(m, part.a, shape.decode_a, shape, 2)
    right = _matrix(m, part.b, shape.decode_b, shape, 1)
    total = np.matmul(left, right.transpose(0, 2, 1))
    before = m.sums.get(part.results)
    if before is not None:
        np.add(before.total, total, out=before.total)
        return
    new = Sums(kind=shape.sums, results=part.results, order=order, total=total)
    if any(s.registers & new.registers for s in m.sums.values()):
        settle(m)
    m.sums[part.results] = new


def _matrix(
    m: Machine, rows: tuple[Fragments, ...], decode: Decode, shape: Shape, halves: int
) -> Array:
    """Fragments as matrices [warps of the batch, rows, k]; `halves`: row halves of a fragment."""
    steps = len(rows[0])
    registers = [r for fragments in rows for fragment in fragments for r in fragment]
    bits = np.empty((len(registers), m.blocks, m.threads), U32)
    for i, r in enumerate(registers):
        bits[i] = read_as(m.registers[r], U32)
    split = bits.reshape(len(rows), steps, shape.upper, halves, -1, 8, 4)
    # From [rows, steps, k halves, row halves, warps, g, t] to [warps, rows, row halves, g, k].
    lined = np.ascontiguousarray(split.transpose(4, 0, 3, 5, 1, 2, 6))
    numbers = decode(lined)
    return numbers.reshape(len(lined), len(rows) * halves * 8, steps * shape.k)


def settle(m: Machine) -> None:
    """Bring all sums to their registers."""
    for sums in m.sums.values():
        results = sums.results
        flat = sums.total.reshape(len(sums.total), -1).take(sums.order, axis=1)
        by_register = np.ascontiguousarray(flat.reshape(len(flat), -1, WARP).transpose(1, 0, 2))
        values = by_register.reshape(len(results), 2, 2, *m.lanes)
        for registers, value in zip(results, values, strict=True):
            _accumulate(m, sums.kind, registers, value)
    m.sums.clear()


def _accumulate(m: Machine, kind: str, registers: tuple[int, ...], value: Array) -> None:
    """Add [row half, column, blocks, threads] to one `mma`'s accumulators."""
    r = m.registers
    if kind == "f16":
        for half, d in enumerate(registers):
            both = np.empty((*m.lanes, 2), F16)
            before = np.ascontiguousarray(np.broadcast_to(read_as(r[d], U32), m.lanes))
            both[...] = value[half].transpose(1, 2, 0) + before.view(F16).reshape(*m.lanes, 2)
            r[d] = both.view(U32)[..., 0]
        return
    for i, d in enumerate(registers):
        part = value[i // 2, i % 2]
        if kind == "s32":
            r[d] = read_as(r[d], S32) + part.astype(S32)
        else:
            r[d] = read_as(r[d], F32) + part
