"""PTX text to a `Module`: the language as NVRTC writes it, and the inline assembly it carries.

Anything not understood is a `PtxError` with its line; nothing is skipped in silence but debugging
directives, which change nothing that runs.
"""

from __future__ import annotations

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
from trtplug.emulator.tokens import FLOAT, NUMBER, WORD, Cursor, integer_of
from trtplug.errors import PtxError

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
        return Module(
            version=version,
            target=target,
            variables=tuple(variables),
            kernels=kernels,
        )

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
            self.skip_past(";")
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
