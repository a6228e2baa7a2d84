"""`atom` and `red`, lane after lane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.access import HINTS, SPACES, fetch, opcode, place, put
from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.values import SCALARS, Array, Type, read_as

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step
    from trtplug.emulator.ptx import Instruction

_ATOMICS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def atomic(ins: Instruction, lay: Layout) -> Step:
    """`atom` and `red`: lane after lane, in order of their number."""
    returns = ins.op == "atom"
    parts = [p for p in ins.parts if p not in HINTS and p not in SPACES and p not in SCALARS]
    if len(parts) != 1 or (parts[0] not in _ATOMICS and parts[0] not in ("exch", "cas")):
        raise unsupported(ins)
    space, _, kind = opcode(ins, also=parts[0])
    dtype = SCALARS[kind]
    rest = ins.operands[1:] if returns else ins.operands
    where = place(ins, lay, rest[0], space)
    values = tuple(lay.operand(ins, o, dtype.itemsize) for o in rest[1:])
    d = lay.register(ins, ins.operands[0]) if returns else None

    def step(m: Machine) -> None:
        addr = where.address(m)
        given = [read_as(m.registers[v], dtype) for v in values]
        old = _one_by_one(m, space, addr, given, parts[0], dtype, ins.line)
        if d is not None:
            m.registers[d] = old

    return step


def _one_by_one(
    m: Machine, space: str, addr: Array, given: list[Array], op: str, dtype: Type, line: int
) -> Array:
    running = np.ones(m.lanes, bool) if m.mask is None else np.broadcast_to(m.mask, m.lanes)
    old = np.zeros(m.lanes, dtype)
    kept, races, tally = m.mask, m.races, m.tally
    m.races = m.tally = None
    addr = np.broadcast_to(addr, m.lanes)
    given = [np.broadcast_to(g, m.lanes) for g in given]
    for row, column in np.argwhere(running):
        m.mask = np.zeros(m.lanes, bool)
        m.mask[row, column] = True
        at = (slice(row, row + 1), slice(column, column + 1))
        here = fetch(m, space, addr[at], dtype.itemsize, line).view(dtype)
        here = np.broadcast_to(here, m.lanes)[at] if here.size > 1 else here
        old[row, column] = here[0, 0]
        put(m, space, addr[at], _updated(op, here, [g[at] for g in given]), dtype.itemsize, line)
    m.mask, m.races, m.tally = kept, races, tally
    return old


def _updated(op: str, here: Array, given: list[Array]) -> Array:
    if op == "exch":
        return given[0]
    if op == "cas":
        return np.where(here == given[0], given[1], here)
    return np.asarray(_ATOMICS[op](here, given[0]))


BUILDERS: dict[str, Builder] = {"atom": atomic, "red": atomic}
