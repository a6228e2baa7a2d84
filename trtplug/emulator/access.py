"""Loads, stores, `cp.async` and atomics: from operands to the memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.memory import WINDOW_BITS, by_lane
from trtplug.emulator.ptx import Address, Immediate, Instruction, Name, Operand
from trtplug.emulator.races import Touch
from trtplug.emulator.values import S32, S64, SCALARS, U32, UNSIGNED, Array, Type, read_as, widened

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.emulator.machine import Machine, Step

_SPACES = {"global", "shared", "local", "param", "const"}
_HINTS = {
    "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak", "relaxed", "gpu", "cta",
    "sys", "acquire", "release", "L1::no_allocate", "L1::evict_last", "L1::evict_first",
    "L1::evict_normal", "L1::evict_unchanged", "L2::64B", "L2::128B", "L2::256B",
    "L2::cache_hint", "shared::cta",
}  # fmt: skip
"""Parts that change no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an address operand points: `registers[base] + offset`."""

    space: str
    """Empty: generic."""
    base: int
    offset: Array
    register_type: Type

    def address(self, m: Machine) -> Array:
        """int64 bytes, [blocks or 1, threads or 1]."""
        base = read_as(m.registers[self.base], self.register_type)
        if self.register_type is U32:
            base = base.astype(S64)
        return base + self.offset if self.offset[0, 0] else base


def place(ins: Instruction, lay: Layout, operand: Operand, space: str) -> Place:
    """The place an operand `[base+offset]` names."""
    if not isinstance(operand, Address):
        raise unsupported(ins, "address")
    base = operand.base if operand.base is not None else Immediate(value=0)
    in_register = isinstance(base, Name) and base.text not in lay.symbols
    narrow = isinstance(base, Name) and in_register and lay.width(base.text) == 4
    number = lay.operand(ins, base, 4 if narrow else 8)
    return Place(
        space=space,
        base=number,
        offset=np.array([[operand.offset]], np.int64),
        register_type=U32 if narrow else S64,
    )


def opcode(ins: Instruction) -> tuple[str, int, str]:
    """Space, number of elements and type of a load or store.

    Raises:
        PtxError: a part that is not known.
    """
    space, count, kind = "", 1, ""
    for part in ins.parts:
        if part in _SPACES:
            space = part
        elif part in ("v2", "v4", "v8"):
            count = int(part[1:])
        elif part in SCALARS:
            kind = part
        elif part == "shared::cta":
            space = "shared"
        elif part not in _HINTS:
            raise unsupported(ins, part)
    if not kind:
        raise unsupported(ins)
    return ("global" if space == "const" else space), count, kind


# One access, whatever its space.


def fetch(m: Machine, space: str, addr: Array, width: int, line: int) -> Array:
    """Elements of `width` bytes at `addr`."""
    if space == "global":
        if m.tally is not None:
            m.tally.global_(line, addr, m.mask, width)
        return m.global_memory.read(m, addr, width, line)
    if space == "shared":
        safe = m.shared.checked(m, addr, width, line)
        watch_shared(m, safe, width, line, writes=False)
        return m.shared.read(m, safe, width, line, m.row_of)
    if space == "local":
        safe = m.local.checked(m, addr, width, line)
        return m.local.read(m, safe, width, line, m.lane_number)
    return _generic(m, addr, lambda s, a: fetch(m, s, a, width, line))


def put(m: Machine, space: str, addr: Array, value: Array, width: int, line: int) -> None:
    """Store elements of `width` bytes at `addr`."""
    if space == "global":
        if m.tally is not None:
            m.tally.global_(line, addr, m.mask, width)
        m.global_memory.write(m, addr, value, width, line)
    elif space == "shared":
        safe = m.shared.checked(m, addr, width, line)
        watch_shared(m, safe, width, line, writes=True)
        m.shared.write(m, safe, value, width, m.row_of)
    elif space == "local":
        m.local.write(m, m.local.checked(m, addr, width, line), value, width, m.lane_number)
    else:

        def store(inner: str, a: Array) -> Array:
            put(m, inner, a, value, width, line)
            return a

        _generic(m, addr, store)


def watch_shared(m: Machine, addr: Array, width: int, line: int, *, writes: bool) -> None:
    """Count an access to shared memory and keep it for the race check."""
    if m.tally is not None:
        m.tally.shared(line, addr, m.mask, width)
    if m.races is not None:
        m.races.note(Touch(writes=writes, addr=addr, mask=m.mask, width=width, line=line))
    if writes and m.shared.state is not None:
        coming = m.shared.coming(addr, width, m.row_of)
        if coming.any():
            bad = coming if m.mask is None else coming & m.mask
            m.findings.lanes("race", line, bad, "writes where a copy is still on its way")


def _generic(m: Machine, addr: Array, access: Callable[[str, Array], Array]) -> Array:
    """Split generic addresses by the window they are in."""
    window = addr >> np.int64(WINDOW_BITS)
    kept, out = m.mask, None
    for number, space in ((1, "shared"), (2, "local"), (0, "global")):
        here = (window == number) if number else (window != 1) & (window != 2)
        m.mask = here if kept is None else here & kept
        if not m.mask.any():
            continue
        if m.mask.all():
            m.mask = None
        part = access(space, addr - np.int64(number << WINDOW_BITS))
        out = part if out is None else np.where(here, part, out)
    m.mask = kept
    assert out is not None
    return out


# Instructions.


def load(ins: Instruction, lay: Layout) -> Step:
    """`ld`, scalar or vector, from any space."""
    space, count, kind = opcode(ins)
    if space == "param":
        return _load_parameter(ins, lay)
    dtype = SCALARS[kind]
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
    same = UNSIGNED[unit]

    def several(m: Machine) -> None:
        value = fetch(m, where.space, where.address(m), unit * count, ins.line)
        parts = np.ascontiguousarray(value).view(same).reshape(*value.shape, count)
        for i, d in enumerate(results):
            m.registers[d] = parts[..., i]

    return several


def _load_parameter(ins: Instruction, lay: Layout) -> Step:
    """Kernel parameters are registers that launch fills: `name` of its width."""
    operand = ins.operands[1]
    if not isinstance(operand, Address) or operand.base is None or operand.offset:
        raise unsupported(ins, "parameter")
    a, d = lay.operand(ins, operand.base, 8), lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        m.registers[d] = m.registers[a]

    return step


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
        value = parts[0] if count == 1 else _joined(parts, width)
        put(m, where.space, where.address(m), value, width, ins.line)

    return step


def _joined(parts: list[Array], width: int) -> Array:
    """Elements side by side, as one element of `width` bytes."""
    shape = np.broadcast_shapes(*[p.shape for p in parts])
    out = np.empty((*shape, len(parts)), parts[0].dtype)
    for i, part in enumerate(parts):
        out[..., i] = part
    return out.view(UNSIGNED[width])[..., 0]


def copy(ins: Instruction, lay: Layout) -> Step:
    """`cp.async` and what closes and awaits its groups."""
    parts = tuple(p for p in ins.parts if p not in _HINTS)
    if parts == ("async", "commit_group"):
        return lambda m: m.copies.commit(m)
    if parts == ("async", "wait_all"):
        return lambda m: m.copies.wait_all(m)
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
        addr = m.shared.checked(m, to.address(m), width, ins.line)
        if m.tally is not None:
            m.tally.shared(ins.line, addr, m.mask, width)
        count = None if given is None else read_as(m.registers[given], S32)
        value = _source(m, of.address(m), count, width, ins.line)
        m.copies.start(m, addr, value, width, ins.line)

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


_ATOMICS: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def atomic(ins: Instruction, lay: Layout) -> Step:
    """`atom` and `red`: lane after lane, in order of their number."""
    returns = ins.op == "atom"
    parts = [p for p in ins.parts if p not in _HINTS and p not in _SPACES and p not in SCALARS]
    space, _, kind = opcode(
        Instruction(
            op=ins.op,
            parts=tuple(p for p in ins.parts if p not in parts),
            operands=(),
            predicate=None,
            line=ins.line,
        )
    )
    if len(parts) != 1 or (parts[0] not in _ATOMICS and parts[0] not in ("exch", "cas")):
        raise unsupported(ins)
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


BUILDERS: dict[str, Builder] = {
    "ld": load,
    "ldu": load,
    "st": store,
    "cp": copy,
    "atom": atomic,
    "red": atomic,
}
__all__ = ["BUILDERS", "by_lane", "fetch", "place", "put", "watch_shared"]
