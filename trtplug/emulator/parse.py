"""PTX text to a `Module`: the language as NVRTC writes it, and the inline assembly it carries.

Anything not understood is a `PtxError` with its line; nothing is skipped in silence but debugging
directives, which change nothing that runs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

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
)
from trtplug.errors import PtxError

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"(?P<newline>\n)|(?P<space>[ \t\r]+)|(?P<string>\"[^\"\n]*\")"
    r"|(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16})"
    r"|(?P<number>-?(?:0[xX][0-9a-fA-F]+|\d+\.\d+|\d+)U?)"
    r"|(?P<word>[.%$_a-zA-Z][\w.$]*(?:::[\w.]+)*)|(?P<mark>[\[\]{}()<>,;:@!|+=])"
)
_WIDTHS = {"pred": 1, "b8": 8, "u8": 8, "s8": 8, "b128": 128} | {
    f"{kind}{bits}": bits for kind in "busf" for bits in (16, 32, 64)
}
_WIDTHS |= {"bf16": 16, "f16x2": 32, "bf16x2": 32}
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_IGNORED_LINES = (".loc", ".file")
_LIMITS = {
    ".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn",
    ".explicitcluster", ".reqnctapercluster", ".maxclusterrank",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    kind: str
    line: int


def parse_module(text: str) -> Module:
    """A PTX text as data.

    Raises:
        PtxError: something not understood, with its line.
    """
    return _Parser(text).module()


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n") or " "


def _tokens(text: str) -> Iterator[_Token]:
    line, at = 1, 0
    text = _COMMENT.sub(_blank, text)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PtxError(f"cannot read {text[at : at + 20]!r}", line)
        kind = match.lastgroup or ""
        if kind == "newline":
            line += 1
        elif kind != "space":
            yield _Token(match.group(), kind, line)
        at = match.end()


def _without_ignored_lines(text: str) -> str:
    """Debugging directives end with their line, not with `;`."""
    lines = text.split("\n")
    return "\n".join("" if x.lstrip().startswith(_IGNORED_LINES) else x for x in lines)


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


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines = tuple(text.split("\n"))
        self.tokens = [*_tokens(_without_ignored_lines(text)), _Token("", "end", len(self.lines))]
        self.at = 0

    # -- tokens

    @property
    def peek(self) -> str:
        return self.tokens[self.at].text

    @property
    def line(self) -> int:
        return self.tokens[self.at].line

    def next(self) -> _Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise PtxError("the text ends in the middle of a statement", token.line)
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.peek != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise PtxError(f"wanted {text!r}, got {self.peek!r}", self.line)

    def skip_past(self, text: str) -> None:
        while self.next().text != text:
            pass

    def integer(self) -> int:
        token = self.next()
        if token.kind != "number" or "." in token.text:
            raise PtxError(f"wanted a whole number, got {token.text!r}", token.line)
        return _integer(token.text)

    # -- module scope

    def module(self) -> Module:
        version = target = ""
        variables: list[Variable] = []
        kernels: dict[str, Kernel] = {}
        while self.tokens[self.at].kind != "end":
            word = self.next()
            if word.text == ".version":
                version = self.next().text
            elif word.text == ".target":
                target = self.next().text
            elif word.text == ".address_size":
                self.integer()
            elif word.text in _LINKAGE:
                continue
            elif word.text == ".entry":
                kernel = self.kernel()
                kernels[kernel.name] = kernel
            elif word.text in (".global", ".const", ".shared"):
                variables.append(self.variable(word.text[1:]))
            else:
                raise PtxError(f"cannot take {word.text!r} at module scope", word.line)
        return Module(
            version=version,
            target=target,
            variables=tuple(variables),
            kernels=kernels,
            lines=self.lines,
        )

    def variable(self, space: str) -> Variable:
        align, element = 1, 0
        while self.peek.startswith("."):
            word = self.next()
            if word.text == ".align":
                align = self.integer()
            elif word.text[1:] in _WIDTHS:
                element = _WIDTHS[word.text[1:]] // 8
            elif word.text not in (".attribute", ".managed"):
                raise PtxError(f"cannot take {word.text!r} in a declaration", word.line)
        name, size = self.next().text, element
        if self.accept("["):
            size = 0 if self.peek == "]" else element * self.integer()
            self.expect("]")
        initial = self.initial(element) if self.accept("=") else b""
        self.expect(";")
        return Variable(
            name=name, space=space, align=max(align, element), bytes=size or None, initial=initial
        )

    def initial(self, element: int) -> bytes:
        many = self.accept("{")
        out = bytearray()
        while True:
            token = self.next()
            if token.kind not in ("number", "float"):
                raise PtxError(f"cannot take the initial value {token.text!r}", token.line)
            value = int(token.text[2:], 16) if token.kind == "float" else _integer(token.text)
            out += (value % (1 << 8 * element)).to_bytes(element, "little")
            if not self.accept(","):
                break
        if many:
            self.expect("}")
        return bytes(out)

    # -- kernels

    def kernel(self) -> Kernel:
        name = self.next().text
        parameters: list[Parameter] = []
        if self.accept("("):
            while not self.accept(")"):
                parameters.append(self.parameter())
                self.accept(",")
        while self.peek in _LIMITS:
            self.next()
            while self.tokens[self.at].kind == "number" or self.peek == ",":
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
            if word.text[1:] in _WIDTHS:
                size = _WIDTHS[word.text[1:]] // 8
            elif word.text == ".align":
                self.integer()
            elif word.text not in (".ptr", ".global", ".const", ".shared", ".local"):
                raise PtxError(f"cannot take {word.text!r} in a parameter", word.line)
        name = self.next().text
        if self.accept("["):
            size *= self.integer()
            self.expect("]")
        return Parameter(name=name, bytes=size)

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
            elif self.tokens[self.at + 1].text == ":":
                body.body.append(Label(name=body.declare(self.next().text)))
                self.next()
            else:
                body.body.append(self.instruction(body))

    def directive(self, body: _Body) -> None:
        word = self.next()
        if word.text == ".reg":
            self.registers(body)
        elif word.text in (".shared", ".local", ".const", ".global"):
            body.variables.append(self.variable(word.text[1:]))
        elif word.text == ".pragma":
            self.skip_past(";")
        else:
            raise PtxError(f"cannot take {word.text!r} in a kernel", word.line)

    def registers(self, body: _Body) -> None:
        word = self.next()
        width = _WIDTHS.get(word.text[1:])
        if width is None:
            raise PtxError(f"cannot take a register of type {word.text!r}", word.line)
        while True:
            name = self.next().text
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
            predicate = Name(text=body.rename(self.next().text), negated=negated)
        op, *parts = self.next().text.split(".")
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand(body))
            if not self.accept(","):
                self.expect(";")
                break
        return Instruction(
            op=op, parts=tuple(parts), operands=tuple(operands), predicate=predicate, line=line
        )

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
        token = self.next()
        if token.kind == "number" and "." not in token.text:
            return Immediate(value=_integer(token.text))
        if token.kind == "float":
            bits = 32 if token.text[1] in "fF" else 64
            return Immediate(value=int(token.text[2:], 16), float_bits=bits)
        if token.kind != "word":
            raise PtxError(f"cannot take the operand {token.text!r}", token.line)
        return Name(text=body.rename(token.text), negated=negated)

    def address(self, body: _Body) -> Address:
        first, offset = self.simple(body), 0
        if self.accept("+") or self.tokens[self.at].kind == "number":
            offset = self.integer()
        self.expect("]")
        if isinstance(first, Immediate):
            return Address(base=None, offset=first.value + offset)
        if not isinstance(first, Name):
            raise PtxError("an address must be a register or a symbol", self.line)
        return Address(base=first, offset=offset)


def _integer(text: str) -> int:
    text = text.rstrip("U")
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    octal = len(digits) > 1 and digits[0] == "0"
    return sign * int(digits, 8 if octal else 10)
