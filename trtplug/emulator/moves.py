"""Moves, comparisons and address conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.floating import FLOAT_TYPES, convert, decoder
from trtplug.emulator.layout import Builder, Layout, kinds, one_type, unsupported
from trtplug.emulator.memory import LOCAL_WINDOW, SHARED_WINDOW
from trtplug.emulator.ptx import Address, Immediate, Instruction, Name, Vector
from trtplug.emulator.values import F32, SCALARS, UNSIGNED, Array, f32_to_tf32, read_as

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step

Function = Callable[..., Array]


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


# Comparisons.

_ORDERED: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip
_JOINS: dict[str, Function] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}  # fmt: skip


def _ordered_not_equal(a: Array, b: Array) -> Array:
    return np.asarray((a != b) & ~np.isnan(a) & ~np.isnan(b))


def _unordered(function: Function) -> Function:
    return lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b)


def _comparison(ins: Instruction, name: str, kind: str) -> Function:
    """A comparison of two registers' values, already read as their type."""
    if kind not in FLOAT_TYPES:
        if name in _ORDERED:
            return _ORDERED[name]
        raise unsupported(ins)
    special: dict[str, Function] = {
        "ne": _ordered_not_equal,
        "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
        "nan": lambda a, b: np.isnan(a) | np.isnan(b),
        "neu": np.not_equal,
    }
    if name in special:
        return special[name]
    if name in ("equ", "ltu", "leu", "gtu", "geu"):
        return _unordered(_ORDERED[name[:-1]])
    if name in ("eq", "lt", "le", "gt", "ge"):
        return _ORDERED[name]
    raise unsupported(ins)


def compare(ins: Instruction, lay: Layout) -> Step:
    """`setp`, with the second result and the joining predicate where they are given."""
    name, rest = ins.parts[0], ins.parts[1:]
    join = _JOINS.get(rest[0]) if rest else None
    if join is not None:
        rest = rest[1:]
    rest = tuple(p for p in rest if p != "ftz")
    if len(rest) != 1 or rest[0] not in SCALARS or rest[0].endswith("x2"):
        raise unsupported(ins)
    dtype, decode = SCALARS[rest[0]], None
    if rest[0] in ("f16", "bf16"):
        decode = decoder(rest[0])
    function = _comparison(ins, name, rest[0])
    results = lay.results(ins, ins.operands[0])
    a, b = (lay.operand(ins, o, dtype.itemsize) for o in ins.operands[1:3])
    if join is None and len(results) == 1 and decode is None:
        d = results[0]

        def fast(m: Machine) -> None:
            r = m.registers
            r[d] = function(read_as(r[a], dtype), read_as(r[b], dtype))

        return fast
    other, negated = None, False
    if join is not None:
        third = ins.operands[3]
        negated = isinstance(third, Name) and third.negated
        plain = Name(text=third.text) if isinstance(third, Name) else third
        other = lay.operand(ins, plain, 1)

    def step(m: Machine) -> None:
        r = m.registers
        x, y = read_as(r[a], dtype), read_as(r[b], dtype)
        if decode is not None:
            x, y = decode(x), decode(y)
        first = function(x, y)
        second = ~first
        if join is not None and other is not None:
            with_ = ~r[other] if negated else r[other]
            first, second = join(first, with_), join(second, with_)
        for d, value in zip(results, (first, second), strict=False):
            r[d] = value

    return step


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
    "setp": compare,
    "cvt": conversion,
    "membar": nothing,
    "prefetch": nothing,
    "nanosleep": nothing,
}
