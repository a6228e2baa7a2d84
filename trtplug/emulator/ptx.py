"""What a PTX module says, as data: kernels, their variables, and instructions with operands.

Made by `parse`; knows nothing of how instructions run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A register, a special register, a symbol or a label."""

    text: str
    negated: bool = False
    """`!%p`: only predicates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    """A constant: its value, or the bits of a floating-point one."""

    value: int
    """The integer; for a float its bit pattern."""
    float_bits: int = 0
    """0: an integer. 32 or 64: the width of the float whose bits `value` holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`[base+offset]`; a base of None is an absolute address."""

    base: Name | None
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """`{a, b, ...}`, or the two halves of `a|b`."""

    items: tuple[Operand, ...]


Operand = Name | Immediate | Address | Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction, such as `@%p1 ld.global.v4.u32 {...}, [%rd1+16];`."""

    op: str
    """First part of the opcode: `ld`."""
    parts: tuple[str, ...]
    """The parts behind it: `("global", "v4", "u32")`."""
    operands: tuple[Operand, ...]
    predicate: Name | None
    line: int
    """1-based line of the PTX text."""
    reads: tuple[str, ...]
    """Names it reads, its predicate among them."""
    writes: tuple[str, ...]
    """Registers it writes."""

    @property
    def opcode(self) -> str:
        """The opcode as written."""
        return ".".join((self.op, *self.parts))


NO_RESULT = {"st", "cp", "bar", "barrier", "bra", "ret", "exit", "red", "membar", "fence", "trap"}
"""Opcodes whose first operand is read, not written."""


def names_in(operand: Operand) -> tuple[str, ...]:
    """Every name an operand mentions."""
    if isinstance(operand, Name):
        return (operand.text,)
    if isinstance(operand, Address):
        return () if operand.base is None else (operand.base.text,)
    if isinstance(operand, Vector):
        return tuple(n for item in operand.items for n in names_in(item))
    return ()


def instruction(
    opcode: str, operands: tuple[Operand, ...], predicate: Name | None, line: int
) -> Instruction:
    """An instruction, with what its opcode says it reads and writes."""
    op, *parts = opcode.split(".")
    first = 0 if op in NO_RESULT else 1
    reads = [n for operand in operands[first:] for n in names_in(operand)]
    if predicate is not None:
        reads.append(predicate.text)
    return Instruction(
        op=op,
        parts=tuple(parts),
        operands=operands,
        predicate=predicate,
        line=line,
        reads=tuple(reads),
        writes=names_in(operands[0]) if first and operands else (),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A place to jump to."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A declared array: `.shared .align 16 .b8 tile[4096]`."""

    name: str
    space: str
    """`global`, `const`, `shared` or `local`."""
    align: int
    size: int | None
    """In bytes. None: `extern`, given at launch."""
    initial: bytes = b""
    """What it holds at first; shorter than `size`: the rest is zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A kernel parameter; pointers are 8 bytes."""

    name: str
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One `.entry`."""

    name: str
    parameters: tuple[Parameter, ...]
    registers: dict[str, int]
    """Width in bits of each register; 1 is a predicate. A name ending in `*` is a family."""
    variables: tuple[Variable, ...]
    """Those of the body: shared and local."""
    body: tuple[Instruction | Label, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A whole PTX text."""

    version: str
    target: str
    variables: tuple[Variable, ...]
    """Those of module scope."""
    kernels: dict[str, Kernel]
