"""Shared libraries made without a compiler: ELF for x86-64 Linux, written byte by byte.

A test that needs a library of some name which exports some symbols must pass where no C compiler
is installed. The functions are given as machine code. Sources: the ELF-64 specification, and the
System V ABI for x86-64 (dynamic section, symbol hash table).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RETURN_ZERO = bytes.fromhex("31c0c3")
"""xor eax, eax; ret"""

_PAGE = 0x1000
_EHDR, _PHDR, _SYM = 64, 56, 24
_LOAD, _DYNAMIC, _GNU_STACK = 1, 2, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14
_GLOBAL_FUNCTION = 0x12
_TEXT_SECTION = 1
"""Any index but 0, which means undefined; there is no section table."""


def write_library(path: Path, functions: Mapping[str, bytes]) -> Path:
    """Writes a library whose soname is its file name.

    Args:
        path: of the file to make.
        functions: exported symbol -> its machine code.
    """
    path.write_bytes(_library(path.name, functions))
    path.chmod(0o755)
    return path


@dataclass(frozen=True, slots=True)
class _Tables:
    """What stands behind the program headers, with its offset in the file."""

    hash_at: int
    symbols_at: int
    strings_at: int
    strings: bytes
    blob: bytes
    """All of it, from `hash_at` on."""


def _library(soname: str, functions: Mapping[str, bytes]) -> bytes:
    tables = _tables(soname, functions)
    head_end = tables.hash_at + len(tables.blob)
    dynamic_at = -(-head_end // _PAGE) * _PAGE
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in (
            (_DT_HASH, tables.hash_at),
            (_DT_STRTAB, tables.strings_at),
            (_DT_SYMTAB, tables.symbols_at),
            (_DT_STRSZ, len(tables.strings)),
            (_DT_SYMENT, _SYM),
            (_DT_SONAME, 1),
            (0, 0),
        )
    )
    segments = b"".join(
        (
            _segment(_LOAD, _READ | _EXECUTE, 0, head_end),
            _segment(_LOAD, _READ | _WRITE, dynamic_at, len(dynamic)),
            _segment(_DYNAMIC, _READ | _WRITE, dynamic_at, len(dynamic)),
            # Without it the loader takes the stack to be executable, which newer ones refuse.
            _segment(_GNU_STACK, _READ | _WRITE, 0, 0),
        )
    )
    head = _file_header(segments=4) + segments
    return (head + tables.blob).ljust(dynamic_at, b"\0") + dynamic


def _file_header(segments: int) -> bytes:
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    shared_object, x86_64 = 3, 62
    numbers = (shared_object, x86_64, 1, 0, _EHDR, 0, 0, _EHDR, _PHDR, segments, 64, 0, 0)
    return ident + struct.pack("<HHIQQQIHHHHHH", *numbers)


def _segment(kind: int, flags: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, _PAGE)


def _tables(soname: str, functions: Mapping[str, bytes]) -> _Tables:
    names = list(functions)
    strings = b"\0" + b"\0".join(n.encode() for n in (soname, *names)) + b"\0"
    hash_at = _EHDR + 4 * _PHDR
    # One bucket: the loader walks the chain of all symbols.
    chain = [0, *range(2, len(names) + 1), 0] if names else [0]
    table = struct.pack(f"<{4 + len(chain) - 1}I", 1, len(chain), bool(names), *chain)
    symbols_at = -(-(hash_at + len(table)) // 8) * 8
    strings_at = symbols_at + _SYM * (len(names) + 1)
    text_at = -(-(strings_at + len(strings)) // 16) * 16
    symbols, text = bytes(_SYM), b""
    for name in names:
        place = strings.index(b"\0" + name.encode() + b"\0") + 1
        code = functions[name]
        symbols += struct.pack(
            "<IBBHQQ", place, _GLOBAL_FUNCTION, 0, _TEXT_SECTION, text_at + len(text), len(code)
        )
        text += code.ljust(-(-len(code) // 16) * 16, b"\xcc")
    blob = table.ljust(symbols_at - hash_at, b"\0") + symbols
    blob = (blob + strings).ljust(text_at - hash_at, b"\0") + text
    return _Tables(hash_at, symbols_at, strings_at, strings, blob)
