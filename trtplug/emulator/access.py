"""One access to memory of any space: operand, address, checks and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.layout import Layout, unsupported
from trtplug.emulator.memory import WINDOW_BITS
from trtplug.emulator.ptx import Address, Immediate, Instruction, Name, Operand
from trtplug.emulator.races import Touch
from trtplug.emulator.values import S64, SCALARS, U32, UNSIGNED, Array, Type, read_as

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.emulator.machine import Machine
    from trtplug.emulator.memory import RowMemory

SPACES = {"global", "shared", "local", "param", "const"}
HINTS = {
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


def opcode(ins: Instruction, also: str = "") -> tuple[str, int, str]:
    """Space, number of elements and type of a load or store; `also`: one more part it may have.

    Raises:
        PtxError: a part that is not known.
    """
    space, count, kind = "", 1, ""
    for part in ins.parts:
        if part in SPACES:
            space = part
        elif part in ("v2", "v4", "v8"):
            count = int(part[1:])
        elif part in SCALARS:
            kind = part
        elif part == "shared::cta":
            space = "shared"
        elif part not in HINTS and part != also:
            raise unsupported(ins, part)
    if not kind:
        raise unsupported(ins)
    return ("global" if space == "const" else space), count, kind


def inside(
    m: Machine,
    memory: RowMemory,
    addr: Array,
    width: int,
    line: int,
    access: Callable[[Array], Array],
) -> Array:
    """Do an access for the lanes whose address is good; the others get zero."""
    safe, good = memory.checked(m, addr, width, line)
    if good is None:
        return access(safe)
    outer, m.mask = m.mask, good
    zero = np.zeros((1, 1), UNSIGNED[width])
    out = np.where(good, access(safe).view(zero.dtype), zero) if good.any() else zero
    m.mask = outer
    return out


def fetch_shared(m: Machine, addr: Array, width: int, line: int) -> Array:
    """Elements of `width` bytes of shared memory."""

    def read(at: Array) -> Array:
        watch_shared(m, at, width, line, writes=False)
        return m.shared.read(m, at, width, line, m.row_of)

    return inside(m, m.shared, addr, width, line, read)


def fetch(m: Machine, space: str, addr: Array, width: int, line: int) -> Array:
    """Elements of `width` bytes at `addr`."""
    if space == "global":
        if m.tally is not None:
            m.tally.count("global", line, addr, m.mask, width)
        return m.global_memory.read(m, addr, width, line)
    if space == "shared":
        return fetch_shared(m, addr, width, line)
    if space == "local":
        local = m.local
        return inside(
            m, local, addr, width, line, lambda at: local.read(m, at, width, line, m.lane_number)
        )
    return _generic(m, addr, lambda s, a: fetch(m, s, a, width, line))


def put(m: Machine, space: str, addr: Array, value: Array, width: int, line: int) -> None:
    """Store elements of `width` bytes at `addr`."""
    if space == "global":
        if m.tally is not None:
            m.tally.count("global", line, addr, m.mask, width)
        m.global_memory.write(m, addr, value, width, line)
    elif space in ("shared", "local"):
        memory, rows = (m.shared, m.row_of) if space == "shared" else (m.local, m.lane_number)

        def write(at: Array) -> Array:
            if space == "shared":
                watch_shared(m, at, width, line, writes=True)
            memory.write(m, at, value, width, rows)
            return np.zeros((1, 1), UNSIGNED[width])

        inside(m, memory, addr, width, line, write)
    else:

        def store(inner: str, a: Array) -> Array:
            put(m, inner, a, value, width, line)
            return a

        _generic(m, addr, store)


def watch_shared(m: Machine, addr: Array, width: int, line: int, *, writes: bool) -> None:
    """Count an access to shared memory and keep it for the race check."""
    if m.tally is not None:
        m.tally.count("shared", line, addr, m.mask, width)
    if m.races is not None:
        m.races.note(Touch(writes, addr, m.mask, width, line))
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
