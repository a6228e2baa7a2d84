"""PTX text to a `Module`: the language as NVRTC writes it, and the inline assembly it carries.

Anything not understood is a `PtxError` with its line; nothing is skipped in silence but debugging
directives, which change nothing that runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from trtplug.emulator.ptx import (
    Address,
    Immediate,
    Instruction,
    Kernel,
    Label,
    Module,
    Name,
    Operand,
    Parameter,
    Variable,
    Vector,
    instruction,
)
from trtplug.errors import PtxError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"[ \t\r]*(?:(\n|\"[^\"\n]*\"|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}"
    r"|-?(?:0[xX][0-9a-fA-F]+|\d+\.\d+|\d+)U?"
    r"|[.%$_a-zA-Z][\w.$]*(?:::[\w.]+)*|[\[\]{}()<>,;:@!|+=])|(.))"
)
NUMBER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9]\d*)U?")
FLOAT = re.compile(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}")
WORD = re.compile(r"[.%$_a-zA-Z]")
_IGNORED_LINES = (".loc ", ".loc\t", ".file ", ".file\t")


def integer_of(text: str) -> int:
    """A whole number as PTX writes it: decimal, hexadecimal, octal; `U` behind it says nothing."""
    text = text.rstrip("U")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    octal = len(digits) > 1 and digits[0] == "0"
    return sign * int(digits, 8 if octal else 10)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n") or " "


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """Words and marks, and the line of each; two empty ones at the end."""
    words: list[str] = []
    lines: list[int] = []
    line = 1
    for word, odd in _TOKEN.findall(_COMMENT.sub(_blank, text)):
        if word == "\n":
            line += 1
        elif odd:
            raise PtxError(f"cannot read {odd!r}", line)
        elif word:
            words.append(word)
            lines.append(line)
    return [*words, "", ""], [*lines, line, line]


def _without_ignored_lines(text: str) -> str:
    """Debugging directives end with their line, not with `;`."""
    lines = text.split("\n")
    return "\n".join("" if x.lstrip().startswith(_IGNORED_LINES) else x for x in lines)


class Cursor:
    """A place in the words of a PTX text."""

    def __init__(self, text: str) -> None:
        self.lines = tuple(text.split("\n"))
        self.words, self.line_of = _tokens(_without_ignored_lines(text))
        self.at = 0

    @property
    def peek(self) -> str:
        """The next word; empty at the end."""
        return self.words[self.at]

    @property
    def line(self) -> int:
        """Line of the next word."""
        return self.line_of[self.at]

    def next(self) -> str:
        """Take a word."""
        word = self.words[self.at]
        if not word:
            raise PtxError("the text ends in the middle of a statement", self.line)
        self.at += 1
        return word

    def error(self, problem: str) -> PtxError:
        """An error at the word just taken."""
        return PtxError(problem, self.line_of[max(self.at - 1, 0)])

    def accept(self, text: str) -> bool:
        """Take the next word if it is `text`."""
        if self.words[self.at] != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        """Take the next word, which must be `text`."""
        if not self.accept(text):
            raise PtxError(f"wanted {text!r}, got {self.peek!r}", self.line)

    def integer(self) -> int:
        """Take a whole number."""
        word = self.next()
        if not NUMBER.fullmatch(word):
            raise self.error(f"wanted a whole number, got {word!r}")
        return integer_of(word)


_WIDTHS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b128": 128} | {
    f"{kind}{bits}": bits for kind in "busf" for bits in (16, 32, 64)
}
_WIDTHS |= {"bf16": 16, "f16x2": 32, "bf16x2": 32}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_LIMITS = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn",
    ".explicitcluster", ".reqnctapercluster", ".maxclusterrank",
}  # fmt: skip


def parse_module(text: str) -> Module:
    """A PTX text as data.

    Raises:
        PtxError: something not understood, with its line.
    """
    return _Parser(text).module()


@dataclass(slots=True)
class _Body:
    """What is collected while a kernel's body is read."""

    registers: dict[str, int] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    body: list[Instruction | Label] = field(default_factory=list)
    scopes: list[dict[str, str]] = field(default_factory=list)
    """New names of what inner scopes declare."""
    count: int = 0

    def rename(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def declare(self, name: str) -> str:
        if not self.scopes:
            return name
        self.scopes[-1][name] = f"{name}@{self.count}"
        return self.scopes[-1][name]


class _Parser(Cursor):
    """Reads statements; its place is the cursor's."""

    # -- module scope

    def module(self) -> Module:
        version = target = ""
        variables: list[Variable] = []
        kernels: dict[str, Kernel] = {}
        while self.peek:
            word = self.next()
            if word == ".version":
                version = self.next()
            elif word == ".target":
                target = self.next()
            elif word == ".address_size":
                self.integer()
            elif word in _LINKAGE:
                continue
            elif word == ".entry":
                kernel = self.kernel()
                kernels[kernel.name] = kernel
            elif word in (".global", ".const", ".shared"):
                variables.append(self.variable(word[1:]))
            else:
                raise self.error(f"cannot take {word!r} at module scope")
        return Module(version=version, target=target, variables=tuple(variables), kernels=kernels)

    def variable(self, space: str) -> Variable:
        align, element = 1, 0
        while self.peek.startswith("."):
            word = self.next()
            if word == ".align":
                align = self.integer()
            elif word[1:] in _WIDTHS:
                element = _WIDTHS[word[1:]] // 8
            elif word not in (".attribute", ".managed"):
                raise self.error(f"cannot take {word!r} in a declaration")
        name, size = self.next(), element
        if self.accept("["):
            size = 0 if self.peek == "]" else element * self.integer()
            self.expect("]")
        initial = self.initial(element) if self.accept("=") else b""
        self.expect(";")
        return Variable(
            name=name, space=space, align=max(align, element), size=size or None, initial=initial
        )

    def initial(self, element: int) -> bytes:
        many = self.accept("{")
        out = bytearray()
        while True:
            word = self.next()
            if FLOAT.fullmatch(word):
                value = int(word[2:], 16)
            elif NUMBER.fullmatch(word):
                value = integer_of(word)
            else:
                raise self.error(f"cannot take the initial value {word!r}")
            out += (value % (1 << 8 * element)).to_bytes(element, "little")
            if not self.accept(","):
                break
        if many:
            self.expect("}")
        return bytes(out)

    # -- kernels

    def kernel(self) -> Kernel:
        name = self.next()
        parameters: list[Parameter] = []
        if self.accept("("):
            while not self.accept(")"):
                parameters.append(self.parameter())
                self.accept(",")
        while self.peek in _LIMITS:
            self.next()
            while self.peek == "," or NUMBER.fullmatch(self.peek):
                self.next()
        self.expect("{")
        body = _Body()
        self.block(body)
        return Kernel(
            name=name,
            parameters=tuple(parameters),
            registers=body.registers,
            variables=tuple(body.variables),
            body=tuple(body.body),
        )

    def parameter(self) -> Parameter:
        self.expect(".param")
        size = 0
        while self.peek.startswith("."):
            word = self.next()
            if word[1:] in _WIDTHS:
                size = _WIDTHS[word[1:]] // 8
            elif word == ".align":
                self.integer()
            elif word not in (".ptr", ".global", ".const", ".shared", ".local"):
                raise self.error(f"cannot take {word!r} in a parameter")
        name = self.next()
        if self.accept("["):
            size *= self.integer()
            self.expect("]")
        return Parameter(name=name, size=size)

    def block(self, body: _Body) -> None:
        """Statements up to the brace that closes this one."""
        while not self.accept("}"):
            if self.accept("{"):
                body.count += 1
                body.scopes.append({})
                self.block(body)
                body.scopes.pop()
            elif self.accept(";"):
                continue
            elif self.peek.startswith("."):
                self.directive(body)
            elif self.words[self.at + 1] == ":":
                body.body.append(Label(name=body.declare(self.next())))
                self.next()
            else:
                body.body.append(self.instruction(body))

    def directive(self, body: _Body) -> None:
        word = self.next()
        if word == ".reg":
            self.registers(body)
        elif word in (".shared", ".local", ".const", ".global"):
            body.variables.append(self.variable(word[1:]))
        elif word == ".pragma":
            while self.next() != ";":
                pass
        else:
            raise self.error(f"cannot take {word!r} in a kernel")

    def registers(self, body: _Body) -> None:
        word = self.next()
        width = _WIDTHS.get(word[1:])
        if width is None:
            raise self.error(f"cannot take a register of type {word!r}")
        while True:
            name = self.next()
            if self.accept("<"):
                self.integer()
                self.expect(">")
                name += "*"
            body.registers[body.declare(name)] = width
            if not self.accept(","):
                break
        self.expect(";")

    # -- instructions

    def instruction(self, body: _Body) -> Instruction:
        line = self.line
        predicate = None
        if self.accept("@"):
            negated = self.accept("!")
            predicate = Name(text=body.rename(self.next()), negated=negated)
        opcode = self.next()
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand(body))
            if not self.accept(","):
                self.expect(";")
                break
        return instruction(opcode, tuple(operands), predicate, line)

    def operand(self, body: _Body) -> Operand:
        if self.accept("{"):
            items = [self.operand(body)]
            while self.accept(","):
                items.append(self.operand(body))
            self.expect("}")
            return Vector(items=tuple(items))
        if self.accept("["):
            return self.address(body)
        first = self.simple(body)
        if self.accept("|"):
            return Vector(items=(first, self.simple(body)))
        return first

    def simple(self, body: _Body) -> Operand:
        negated = self.accept("!")
        word = self.next()
        if WORD.match(word):
            return Name(text=body.rename(word), negated=negated)
        if FLOAT.fullmatch(word):
            return Immediate(value=int(word[2:], 16), float_bits=32 if word[1] in "fF" else 64)
        if NUMBER.fullmatch(word):
            return Immediate(value=integer_of(word))
        raise self.error(f"cannot take the operand {word!r}")

    def address(self, body: _Body) -> Address:
        first, offset = self.simple(body), 0
        if self.accept("+") or NUMBER.fullmatch(self.peek):
            offset = self.integer()
        self.expect("]")
        if isinstance(first, Immediate):
            return Address(base=None, offset=first.value + offset)
        if not isinstance(first, Name):
            raise PtxError("an address must be a register or a symbol", self.line)
        return Address(base=first, offset=offset)
