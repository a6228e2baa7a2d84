"""Numbers for what instructions name: registers, constants, special registers, symbols.

Decoding turns each operand into a place in one list, so that a step does no look-up by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np

from trtplug.emulator.machine import Step
from trtplug.emulator.ptx import Immediate, Instruction, Name, Operand, Vector
from trtplug.emulator.values import SCALARS, Array, Type, constant
from trtplug.errors import PtxError

_SPECIAL = re.compile(r"%(?:n?tid|n?ctaid)\.[xyz]|%laneid|%warpid|%lanemask_[lg][te]|%lanemask_eq")
_DIGITS = re.compile(r"\d+$")
_ZEROS = {0: np.zeros((1, 1), bool)} | {n: constant(0, n) for n in (1, 2, 4, 8, 16)}
"""What registers of each width in bytes hold at first; arrays are never changed in place."""


def unsupported(ins: Instruction, why: str = "") -> PtxError:
    """The error for what the emulator does not know."""
    return PtxError(f"unknown to the emulator: {ins.opcode}{why and f' ({why})'}", ins.line)


@dataclass(slots=True)
class Layout:
    """Hands out the numbers."""

    declared: dict[str, int]
    """Width in bits by register name or family, from the kernel."""
    symbols: dict[str, int]
    """Address of each variable, in its own space."""
    numbers: dict[str, int] = field(default_factory=dict)
    initial: list[Array] = field(default_factory=list)
    """What each number holds at first."""
    specials: dict[str, int] = field(default_factory=dict)
    """Special registers in use, to be filled at launch."""
    _constants: dict[tuple[int, int], int] = field(default_factory=dict)

    def width(self, name: str) -> int:
        """Width of a register in bytes; 0 for a predicate."""
        bits = self.declared.get(name) or self.declared.get(_DIGITS.sub("", name) + "*")
        if bits is None:
            raise PtxError(f"{name} is not declared", 0)
        return bits // 8

    def new(self, value: Array) -> int:
        """A fresh number that holds `value` at first."""
        self.initial.append(value)
        return len(self.initial) - 1

    def register(self, ins: Instruction, operand: Operand) -> int:
        """Number of a register that is written."""
        if not isinstance(operand, Name):
            raise unsupported(ins, "a result that is no register")
        if operand.text == "_":
            return self.numbers.setdefault("_", self.new(np.zeros((1, 1), np.uint32)))
        return self._named(ins, operand.text)

    def _named(self, ins: Instruction, name: str) -> int:
        if name not in self.numbers:
            try:
                width = self.width(name)
            except PtxError as error:
                raise PtxError(error.problem, ins.line) from None
            self.numbers[name] = self.new(_ZEROS[width])
        return self.numbers[name]

    def operand(self, ins: Instruction, operand: Operand, width: int) -> int:
        """Number of an operand that is read; constants get `width` bytes."""
        if isinstance(operand, Immediate):
            return self.constant(_bits(operand, width), width)
        if not isinstance(operand, Name) or operand.negated:
            raise unsupported(ins, "operand")
        if _SPECIAL.fullmatch(operand.text):
            if operand.text not in self.specials:
                self.specials[operand.text] = self.new(constant(0, 4))
            return self.specials[operand.text]
        if operand.text in self.symbols:
            return self.constant(self.symbols[operand.text], width)
        return self._named(ins, operand.text)

    def constant(self, value: int, width: int) -> int:
        """Number of a constant."""
        key = (value % (1 << 8 * width), width)
        if key not in self._constants:
            self._constants[key] = self.new(constant(value, width))
        return self._constants[key]

    def vector(self, ins: Instruction, operand: Operand, width: int) -> tuple[int, ...]:
        """Numbers of a vector's items that are read, or of a single operand."""
        return tuple(self.operand(ins, item, width) for item in _items(operand))

    def results(self, ins: Instruction, operand: Operand) -> tuple[int, ...]:
        """Numbers of a vector's items that are written, or of a single register."""
        return tuple(self.register(ins, item) for item in _items(operand))


def _items(operand: Operand) -> tuple[Operand, ...]:
    return operand.items if isinstance(operand, Vector) else (operand,)


def _bits(value: Immediate, width: int) -> int:
    """The bits of a constant in a register of `width` bytes."""
    if value.float_bits == 0 or value.float_bits == 8 * width:
        return value.value
    have, want = (np.float32, np.float64) if value.float_bits == 32 else (np.float64, np.float32)
    number = np.array([value.value], f"u{value.float_bits // 8}").view(have).astype(want)
    return int(number.view(f"u{width}")[0])


Builder = Callable[[Instruction, Layout], Step]
"""Turns one instruction into a step; `PtxError` where it cannot."""


def kinds(ins: Instruction, allowed: Collection[str] = ()) -> tuple[set[str], tuple[str, ...]]:
    """The parts of an opcode as flags, all of them in `allowed`, and types in order.

    Raises:
        PtxError: a part that is neither.
    """
    types = tuple(p for p in ins.parts if p in SCALARS or p == "pred")
    flags = {p for p in ins.parts if p not in types}
    if not flags <= set(allowed):
        raise unsupported(ins, ".".join(sorted(flags - set(allowed))))
    return flags, types


def one_type(ins: Instruction, allowed: Collection[str] = ()) -> tuple[set[str], str, Type]:
    """Flags, and the one type an opcode must have."""
    flags, types = kinds(ins, allowed)
    if len(types) != 1 or types[0] == "pred":
        raise unsupported(ins)
    return flags, types[0], SCALARS[types[0]]
