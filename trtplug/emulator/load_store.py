"""`ld`, `st` and `cp.async`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.access import HINTS, SPACES, fetch, fetch_shared, inside, opcode, place, put
from trtplug.emulator.integer import apply
from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.ptx import Address, Immediate, Instruction, Name
from trtplug.emulator.values import (
    S32,
    SCALARS,
    U32,
    UNSIGNED,
    WARP,
    Array,
    Type,
    joined,
    read_as,
    split,
    spread,
    widened,
)
from trtplug.emulator.warp import whole

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step


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
    full = np.ascontiguousarray(spread(rows, (len(rows), threads)))
    out: list[Array] = []
    if not turned:
        words = full.view(U32).reshape(len(rows), -1, WARP // _MATRIX_ROWS, WARP)
        out = [words[:, :, j].reshape(len(rows), threads) for j in range(count)]
    else:
        halves = full.view(np.uint16).reshape(len(rows), -1, WARP // _MATRIX_ROWS, 8, 8)
        for j in range(count):
            turned_matrix = np.ascontiguousarray(halves[:, :, j].swapaxes(-1, -2))
            out.append(turned_matrix.view(U32).reshape(len(rows), threads))
    return out


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


def load(ins: Instruction, lay: Layout) -> Step:
    """`ld`, scalar or vector, from any space."""
    space, count, kind = opcode(ins)
    dtype = SCALARS[kind]
    if space == "param":
        return _load_parameter(ins, lay, dtype)
    unit = dtype.itemsize
    where = place(ins, lay, ins.operands[1], space)
    results = lay.results(ins, ins.operands[0])
    if len(results) != count:
        raise unsupported(ins, "operands")
    if count == 1:
        width = lay.width(getattr(ins.operands[0], "text", "")) or unit

        def single(m: Machine) -> None:
            value = fetch(m, where.space, where.address(m), unit, ins.line).view(dtype)
            m.registers[results[0]] = value if unit == width else widened(value, width)

        return single

    def several(m: Machine) -> None:
        value = fetch(m, where.space, where.address(m), unit * count, ins.line)
        parts = split(value, count)
        for i, d in enumerate(results):
            m.registers[d] = parts[..., i]

    return several


def _load_parameter(ins: Instruction, lay: Layout, dtype: Type) -> Step:
    """Kernel parameters are registers that launch fills: `name` of its width."""
    operand = ins.operands[1]
    if not isinstance(operand, Address) or operand.base is None or operand.offset:
        raise unsupported(ins, "parameter")
    a, d = lay.operand(ins, operand.base, 8), lay.register(ins, ins.operands[0])
    return apply(lambda x: x, (UNSIGNED[dtype.itemsize],), d, (a,))


def store(ins: Instruction, lay: Layout) -> Step:
    """`st`, scalar or vector, to any space."""
    space, count, kind = opcode(ins)
    unit = UNSIGNED[SCALARS[kind].itemsize]
    where = place(ins, lay, ins.operands[0], space)
    values = lay.vector(ins, ins.operands[1], unit.itemsize)
    if len(values) != count:
        raise unsupported(ins, "operands")
    width = unit.itemsize * count

    def step(m: Machine) -> None:
        parts = [read_as(m.registers[v], unit) for v in values]
        value = parts[0] if count == 1 else joined(parts)
        put(m, where.space, where.address(m), value, width, ins.line)

    return step


def copy(ins: Instruction, lay: Layout) -> Step:
    """`cp.async` and what closes and awaits its groups."""
    parts = tuple(p for p in ins.parts if p not in HINTS)
    if parts == ("async", "commit_group"):
        return lambda m: m.copies.commit(m)
    if parts == ("async", "wait_all"):
        return lambda m: m.copies.wait(m, -1)
    if parts == ("async", "wait_group"):
        left = ins.operands[0]
        if not isinstance(left, Immediate):
            raise unsupported(ins, "operand")
        return lambda m: m.copies.wait(m, left.value)
    if parts != ("async", "shared", "global"):
        raise unsupported(ins)
    return _copy(ins, lay)


def _copy(ins: Instruction, lay: Layout) -> Step:
    to = place(ins, lay, ins.operands[0], "shared")
    of = place(ins, lay, ins.operands[1], "global")
    size = ins.operands[2]
    if not isinstance(size, Immediate) or size.value not in (4, 8, 16):
        raise unsupported(ins, "size")
    width = size.value
    given = lay.operand(ins, ins.operands[3], 4) if len(ins.operands) > 3 else None
    if len(ins.operands) > 4 or (given is not None and _is_predicate(ins, lay)):
        raise unsupported(ins, "operands")

    def step(m: Machine) -> None:
        def begin(addr: Array) -> Array:
            if m.tally is not None:
                m.tally.count("shared", ins.line, addr, m.mask, width)
            count = None if given is None else read_as(m.registers[given], S32)
            value = _source(m, of.address(m), count, width, ins.line)
            m.copies.start(m, addr, value, width, ins.line)
            return value

        inside(m, m.shared, to.address(m), width, ins.line, begin)

    return step


def _is_predicate(ins: Instruction, lay: Layout) -> bool:
    operand = ins.operands[3]
    return isinstance(operand, Name) and lay.width(operand.text) == 0


def _source(m: Machine, addr: Array, count: Array | None, width: int, line: int) -> Array:
    """What a copy brings: `count` bytes of memory, zeros behind them."""
    if count is None or (count == width).all():
        return fetch(m, "global", addr, width, line)
    kept = m.mask
    reads = count > 0
    m.mask = reads if kept is None else reads & kept
    zero = np.zeros((1, 1), UNSIGNED[width])
    value = np.where(m.mask, fetch(m, "global", addr, width, line), zero) if m.mask.any() else zero
    m.mask = kept
    partial = reads & (count < width)
    if partial.any():
        shape = np.broadcast_shapes(value.shape, count.shape)
        flat = np.ascontiguousarray(np.broadcast_to(value, shape)).view(np.uint8)
        flat = flat.reshape(*shape, width) * (np.arange(width) < count[..., None])
        value = flat.astype(np.uint8).view(UNSIGNED[width])[..., 0]
    return value


BUILDERS: dict[str, Builder] = {
    "ld": load, "ldu": load, "st": store, "cp": copy, "atom": atomic, "red": atomic,
    "ldmatrix": load_matrix,
}  # fmt: skip
