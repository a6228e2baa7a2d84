"""Comparisons: `setp` of integers and of floating-point numbers, which may be NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.floating import FLOAT_TYPES, decoder
from trtplug.emulator.integer import LOGICAL, apply
from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.ptx import Instruction, Name
from trtplug.emulator.values import SCALARS, Array, read_as

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step

Function = Callable[..., Array]

_ORDERED: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
    "hs": np.greater_equal,
}  # fmt: skip


def _is_nan(a: Array, b: Array) -> Array:
    return np.asarray(np.isnan(a) | np.isnan(b))


def _comparison(ins: Instruction, name: str, kind: str) -> Function:
    """A comparison of two registers' values, already read as their type."""
    special: dict[str, Function] = {
        "ne": lambda a, b: (a != b) & ~_is_nan(a, b),
        "num": lambda a, b: ~_is_nan(a, b),
        "nan": _is_nan,
        "neu": np.not_equal,
    }
    if kind not in FLOAT_TYPES:
        if name in _ORDERED:
            return _ORDERED[name]
    elif name in special:
        return special[name]
    elif name in ("equ", "ltu", "leu", "gtu", "geu"):
        ordered = _ORDERED[name[:-1]]
        return lambda a, b: ordered(a, b) | _is_nan(a, b)
    elif name in ("eq", "lt", "le", "gt", "ge"):
        return _ORDERED[name]
    raise unsupported(ins)


def compare(ins: Instruction, lay: Layout) -> Step:
    """`setp`, with the second result and the joining predicate where they are given."""
    name, *rest = (p for p in ins.parts if p != "ftz")
    join = _join(ins, lay, rest.pop(0)) if len(rest) == 2 else None
    if len(rest) != 1 or rest[0] not in SCALARS or rest[0].endswith("x2"):
        raise unsupported(ins)
    dtype = SCALARS[rest[0]]
    decode = decoder(rest[0]) if rest[0] in ("f16", "bf16") else None
    function = _comparison(ins, name, rest[0])
    results = lay.results(ins, ins.operands[0])
    a, b = (lay.operand(ins, o, dtype.itemsize) for o in ins.operands[1:3])
    if join is None and len(results) == 1 and decode is None:
        return apply(function, (dtype, dtype), results[0], (a, b))

    def step(m: Machine) -> None:
        r = m.registers
        x, y = read_as(r[a], dtype), read_as(r[b], dtype)
        if decode is not None:
            x, y = decode(x), decode(y)
        first = function(x, y)
        both = (first, ~first)
        if join is not None:
            both = (join(m, first), join(m, ~first))
        for d, value in zip(results, both, strict=False):
            r[d] = value

    return step


def _join(ins: Instruction, lay: Layout, name: str) -> Callable[[Machine, Array], Array]:
    """How a result is joined with a predicate: both results of `setp` with the same one."""
    other = ins.operands[3]
    if name not in LOGICAL or not isinstance(other, Name):
        raise unsupported(ins)
    number = lay.operand(ins, Name(text=other.text), 1)
    function, negated = LOGICAL[name], other.negated

    def join(m: Machine, value: Array) -> Array:
        given = m.registers[number]
        return function(value, ~given if negated else given)

    return join


BUILDERS: dict[str, Builder] = {"setp": compare}
