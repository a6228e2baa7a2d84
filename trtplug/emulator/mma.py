"""`mma`: what each spelling multiplies, and which of a block's can run as one matrix product.

Each register of a fragment holds, for lane l with g = l / 4 and t = l % 4, `e` elements that lie
side by side along k (e = 2 for fp16 and bf16, 1 for tf32, 4 for int8): of A, row g (+ 8 in odd
registers), k = e t (+ 4 e in the upper two); of B, column g and the same k. The accumulators hold
columns 2 t and 2 t + 1 of row g, then of row g + 8. (PTX ISA, "Matrix fragments for mma".)

Products that share fragments run together, and so do those that add to the same accumulators one
after the other: the 64 `mma` of a 64 x 64 warp tile and 32 along k are one product of each warp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from trtplug.emulator.layout import Layout, unsupported
from trtplug.emulator.ptx import Instruction
from trtplug.emulator.values import F16, F32, S8, U8, U16, U32, Array, Type, bf16_to_f32

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

    @property
    def steps(self) -> int:
        """Fragments along k."""
        return len(self.a[0])


def rectangles(products: tuple[Product, ...]) -> tuple[Rectangle, ...]:
    """Matrix products that come to the same as a group of `mma`.

    Rows and columns stand in order of their accumulators, so that another group over the same
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
