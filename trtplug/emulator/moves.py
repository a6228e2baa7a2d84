"""Moves, conversions of numbers and of addresses, and what does nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.floating import convert
from trtplug.emulator.layout import Builder, Layout, kinds, one_type, unsupported
from trtplug.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW
from trtplug.emulator.ptx import Address, Immediate, Instruction, Name, Vector
from trtplug.emulator.values import F32, UNSIGNED, f32_to_tf32, read_as

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step


def move(ins: Instruction, lay: Layout) -> Step:
    """`mov`, with packing and unpacking of vectors."""
    if ins.parts == ("pred",):
        return _move_predicate(ins, lay)
    _, _, dtype = one_type(ins)
    to, of = ins.operands
    if isinstance(to, Vector):
        return _unpack(ins, lay, dtype.itemsize)
    d = lay.register(ins, to)
    if isinstance(of, Vector):
        return _pack(ins, lay, dtype.itemsize)
    a = lay.operand(ins, of, dtype.itemsize)
    same = UNSIGNED[dtype.itemsize]

    def step(m: Machine) -> None:
        x = m.registers[a]
        m.registers[d] = x if x.itemsize == same.itemsize else read_as(x, same)

    return step


def _move_predicate(ins: Instruction, lay: Layout) -> Step:
    d, of = lay.register(ins, ins.operands[0]), ins.operands[1]
    value = None
    if isinstance(of, Immediate):
        a, value = 0, np.full((1, 1), of.value != 0)
    else:
        a = lay.operand(ins, of, 1)

    def step(m: Machine) -> None:
        m.registers[d] = m.registers[a] if value is None else value

    return step


def _pack(ins: Instruction, lay: Layout, width: int) -> Step:
    d = lay.register(ins, ins.operands[0])
    items = ins.operands[1]
    assert isinstance(items, Vector)
    part = UNSIGNED[width // len(items.items)]
    parts = lay.vector(ins, items, part.itemsize)

    def step(m: Machine) -> None:
        r = m.registers
        values = [read_as(r[p], part) for p in parts]
        out = np.empty((*np.broadcast_shapes(*[v.shape for v in values]), len(values)), part)
        for i, value in enumerate(values):
            out[..., i] = value
        r[d] = out.view(UNSIGNED[width])[..., 0]

    return step


def _unpack(ins: Instruction, lay: Layout, width: int) -> Step:
    parts = lay.results(ins, ins.operands[0])
    part = UNSIGNED[width // len(parts)]
    a = lay.operand(ins, ins.operands[1], width)

    def step(m: Machine) -> None:
        x = np.ascontiguousarray(read_as(m.registers[a], UNSIGNED[width]))
        pieces = x.view(part).reshape(*x.shape, len(parts))
        for i, p in enumerate(parts):
            m.registers[p] = pieces[..., i]

    return step


def to_address_space(ins: Instruction, lay: Layout) -> Step:
    """`cvta`: between an address of one space and the generic one that holds all of them."""
    windows = {"global": 0, "const": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
    parts = [p for p in ins.parts if p not in ("to", "u64")]
    if len(parts) != 1 or parts[0] not in windows:
        raise unsupported(ins)
    sign = -1 if "to" in ins.parts else 1
    offset = np.array([[sign * windows[parts[0]]]], np.int64)
    of = ins.operands[1]
    a = lay.operand(ins, _base_of(of) if isinstance(of, Address) else of, 8)
    d = lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        x = read_as(m.registers[a], offset.dtype)
        m.registers[d] = x + offset if windows[parts[0]] else x

    return step


def _base_of(address: Address) -> Name:
    assert address.base is not None
    return address.base


def to_tf32(ins: Instruction, lay: Layout) -> Step:
    """`cvt.rna.tf32.f32`."""
    if ins.parts != ("rna", "tf32", "f32"):
        raise unsupported(ins)
    a, d = lay.operand(ins, ins.operands[1], 4), lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        m.registers[d] = f32_to_tf32(read_as(m.registers[a], F32))

    return step


def conversion(ins: Instruction, lay: Layout) -> Step:
    """`cvt`."""
    return to_tf32(ins, lay) if "tf32" in ins.parts else convert(ins, lay)


def nothing(ins: Instruction, lay: Layout) -> Step:
    """Fences and hints: memory is in order here, and the race check looks at barriers alone."""
    kinds(ins, ins.parts)
    del lay

    def step(m: Machine) -> None:
        del m

    return step


BUILDERS: dict[str, Builder] = {
    "mov": move,
    "cvta": to_address_space,
    "cvt": conversion,
    "membar": nothing,
    "prefetch": nothing,
    "nanosleep": nothing,
}
