"""Instructions of a whole warp: shuffles, votes, reductions, the warp barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.ptx import Instruction, Name
from trtplug.emulator.values import INTEGERS, S32, U32, WARP, Array, Type, read_as, warps

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.emulator.machine import Machine, Step

_LANE = np.arange(WARP, dtype=np.int32)


def whole(m: Machine, members: Array, line: int, what: str) -> None:
    """Report warps of which some lane runs and another one, named in `members`, does not."""
    if m.mask is None:
        return
    rows = max(len(m.mask), len(members))
    running = np.broadcast_to(warps(m.mask, m.threads), (rows, m.threads // WARP, WARP))
    bits = read_as(members, U32)
    named = warps((np.broadcast_to(bits, (len(bits), m.threads)) >> (m.lane & 31)) & 1, m.threads)
    wanted = (named != 0) & warps(m.real, m.threads)
    bad = running.any(axis=2, keepdims=True) & wanted & ~running
    if bad.any():
        bad = np.broadcast_to(bad, (rows, m.threads // WARP, WARP)).reshape(rows, m.threads)
        m.findings.lanes(
            "divergent_warp", line, bad, f"{what} wants this thread, which is elsewhere"
        )


def _sources(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """Lane each lane reads, and whether it is in range; b and c [rows, warps or 1, 32 or 1]."""
    clamp, segment = c & 31, (c >> 8) & 31
    low = _LANE & segment
    top = low | (clamp & ~segment)
    if mode == "up":
        lane = _LANE - b
        inside = lane >= top
    else:
        lane = {"down": _LANE + b, "bfly": _LANE ^ b, "idx": low | (b & ~segment)}[mode]
        inside = lane <= top
    return np.where(inside, lane, _LANE), inside


def shuffle(ins: Instruction, lay: Layout) -> Step:
    """`shfl.sync.MODE.b32 d|p, a, b, c, members`."""
    if len(ins.parts) != 3 or ins.parts[0] != "sync" or ins.parts[2] != "b32":
        raise unsupported(ins)
    mode = ins.parts[1]
    results = lay.results(ins, ins.operands[0])
    a, b, c, members = (lay.operand(ins, o, 4) for o in ins.operands[1:])

    def spread(m: Machine, x: Array) -> Array:
        x = read_as(x, S32) & 31 if x is not m.registers[c] else read_as(x, S32)
        return x[:, :, None] if x.shape[1] == 1 else warps(x, m.threads)

    def step(m: Machine) -> None:
        r = m.registers
        whole(m, r[members], ins.line, "a shuffle")
        lane, inside = _sources(mode, spread(m, r[b]), spread(m, r[c]))
        x = warps(read_as(r[a], U32), m.threads)
        if lane.size == WARP:
            out = x[:, :, lane.ravel()]
        else:
            shape = np.broadcast_shapes(x.shape, lane.shape)
            wide = np.broadcast_to(x, shape)
            out = np.take_along_axis(wide, np.broadcast_to(lane, shape).astype(np.int64), axis=2)
        r[results[0]] = out.reshape(len(out), m.threads)
        if len(results) > 1:
            shape = (len(inside), m.threads // WARP, WARP)
            r[results[1]] = np.broadcast_to(inside, shape).reshape(len(inside), m.threads)

    return step


def vote(ins: Instruction, lay: Layout) -> Step:
    """`vote.sync.{all,any,uni,ballot}`."""
    if len(ins.parts) != 3 or ins.parts[0] != "sync" or ins.parts[1] not in _VOTES:
        raise unsupported(ins)
    result = _VOTES[ins.parts[1]]
    source = ins.operands[1]
    if not isinstance(source, Name):
        raise unsupported(ins, "operand")
    p, negated = lay.operand(ins, Name(text=source.text), 1), source.negated
    members = lay.operand(ins, ins.operands[2], 4)
    d = lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        r = m.registers
        whole(m, r[members], ins.line, "a vote")
        value = ~r[p] if negated else r[p]
        on = warps(np.ones((1, 1), bool) if m.mask is None else m.mask, m.threads)
        bits = warps(value, m.threads)
        r[d] = _over_warps(result(bits & on, ~bits & on), m)

    return step


def _any(lanes: Array) -> Array:
    return np.asarray(lanes.any(axis=2, keepdims=True))


def _ballot(lanes: Array) -> Array:
    """[rows, warps, 32] bool as a bit each, [rows, warps, 1]."""
    bits = lanes.astype(U32) << _LANE.astype(U32)
    return np.asarray(bits.sum(axis=2, keepdims=True, dtype=U32))


_VOTES: dict[str, Callable[[Array, Array], Array]] = {
    "ballot": lambda yes, _: _ballot(yes),
    "any": lambda yes, _: _any(yes),
    "all": lambda _, no: ~_any(no),
    "uni": lambda yes, no: ~(_any(yes) & _any(no)),
}


def _over_warps(x: Array, m: Machine) -> Array:
    """[rows, warps, 1] for every lane."""
    return np.broadcast_to(x, (*x.shape[:2], WARP)).reshape(len(x), m.threads)


_REDUCTIONS: dict[str, tuple[Callable[..., Array], int | None]] = {
    "add": (np.add.reduce, 0),
    "min": (np.minimum.reduce, None),
    "max": (np.maximum.reduce, None),
    "and": (np.bitwise_and.reduce, -1),
    "or": (np.bitwise_or.reduce, 0),
    "xor": (np.bitwise_xor.reduce, 0),
}


def reduce(ins: Instruction, lay: Layout) -> Step:
    """`redux.sync.OP.TYPE`: over the lanes that run."""
    if len(ins.parts) != 3 or ins.parts[0] != "sync" or ins.parts[1] not in _REDUCTIONS:
        raise unsupported(ins)
    function, empty = _REDUCTIONS[ins.parts[1]]
    dtype = INTEGERS[ins.parts[2]]
    a, members = (lay.operand(ins, o, 4) for o in ins.operands[1:])
    d = lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        r = m.registers
        whole(m, r[members], ins.line, "a reduction")
        x = warps(read_as(r[a], dtype), m.threads)
        if m.mask is not None:
            x = np.where(warps(m.mask, m.threads), x, _neutral(empty, ins.parts[1], dtype))
        out = function(x, axis=2, keepdims=True).astype(dtype)
        r[d] = _over_warps(out, m)

    return step


def _neutral(value: int | None, op: str, dtype: Type) -> Array:
    info = np.iinfo(dtype)
    if value is None:
        value = info.max if op == "min" else info.min
    return np.array(value).astype(dtype)


def active(ins: Instruction, lay: Layout) -> Step:
    """`activemask.b32`."""
    d = lay.register(ins, ins.operands[0])

    def step(m: Machine) -> None:
        on = warps(m.real if m.mask is None else m.mask, m.threads)
        m.registers[d] = _over_warps(_ballot(on), m)

    return step


def barrier(ins: Instruction, lay: Layout) -> Step:
    """`bar.warp.sync members`: orders the memory of the warp's lanes."""
    if ins.parts != ("warp", "sync"):
        raise unsupported(ins)
    members = lay.operand(ins, ins.operands[0], 4)

    def step(m: Machine) -> None:
        whole(m, m.registers[members], ins.line, "a warp barrier")
        if m.races is not None:
            m.races.warp_barrier()

    return step


BUILDERS: dict[str, Builder] = {
    "shfl": shuffle,
    "vote": vote,
    "redux": reduce,
    "activemask": active,
    "bar": barrier,
}
