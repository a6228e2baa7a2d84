"""Runs matrix products, and keeps their sums as matrices until somebody reads a register.

Through a main loop the accumulators go from `mma` to `mma` alone: the products of its rounds are
added up as matrices, and go to the registers once, before the first other instruction that touches
one of them. Sums are in fp32 in the order of the matrix product; hardware adds in an order of its
own and truncates, so that last bits differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.mma import Decode, Fragments, Product, Rectangle, Shape, rectangles
from trtplug.emulator.sums import Sums
from trtplug.emulator.values import F16, F32, S32, U32, WARP, Array, read_as
from trtplug.emulator.warp import whole

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step


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
