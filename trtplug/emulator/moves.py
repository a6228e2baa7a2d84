"""Moves, conversions of numbers and of addresses, and what does nothing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.floating import convert
from trtplug.emulator.integer import apply, simple
from trtplug.emulator.layout import Builder, Layout, one_type, unsupported
from trtplug.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW
from trtplug.emulator.ptx import Address, Instruction, Name, Vector
from trtplug.emulator.values import BOOL, F32, S64, UNSIGNED, f32_to_tf32, joined, read_as, split

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step


def move(ins: Instruction, lay: Layout) -> Step:
    """`mov`, with packing and unpacking of vectors."""
    if ins.parts == ("pred",):
        # A constant is a byte, of which any value but 0 is true.
        return simple(ins, lay, lambda x: x != 0, BOOL)
    _, _, dtype = one_type(ins)
    to, of = ins.operands
    if isinstance(to, Vector):
        return _unpack(ins, lay, dtype.itemsize)
    d = lay.register(ins, to)
    if isinstance(of, Vector):
        part = UNSIGNED[dtype.itemsize // len(of.items)]
        parts = lay.vector(ins, of, part.itemsize)
        return apply(lambda *values: joined(values), (part,) * len(parts), d, parts)
    a = lay.operand(ins, of, dtype.itemsize)
    same = UNSIGNED[dtype.itemsize]

    def step(m: Machine) -> None:
        x = m.registers[a]
        m.registers[d] = x if x.itemsize == same.itemsize else read_as(x, same)

    return step


def _unpack(ins: Instruction, lay: Layout, width: int) -> Step:
    parts = lay.results(ins, ins.operands[0])
    a = lay.operand(ins, ins.operands[1], width)

    def step(m: Machine) -> None:
        values = split(read_as(m.registers[a], UNSIGNED[width]), len(parts))
        for i, p in enumerate(parts):
            m.registers[p] = values[..., i]

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
    move_by = (lambda x: x + offset) if windows[parts[0]] else (lambda x: x)
    return apply(move_by, (S64,), lay.register(ins, ins.operands[0]), (a,))


def _base_of(address: Address) -> Name:
    assert address.base is not None
    return address.base


def to_tf32(ins: Instruction, lay: Layout) -> Step:
    """`cvt.rna.tf32.f32`."""
    if ins.parts != ("rna", "tf32", "f32"):
        raise unsupported(ins)
    return simple(ins, lay, f32_to_tf32, F32)


def conversion(ins: Instruction, lay: Layout) -> Step:
    """`cvt`."""
    return to_tf32(ins, lay) if "tf32" in ins.parts else convert(ins, lay)


def nothing(ins: Instruction, lay: Layout) -> Step:
    """Fences and hints: memory is in order here, and the race check looks at barriers alone."""
    del ins, lay
    return lambda _: None


BUILDERS: dict[str, Builder] = {
    "mov": move,
    "cvta": to_address_space,
    "cvt": conversion,
    "membar": nothing,
    "prefetch": nothing,
    "nanosleep": nothing,
}
