"""The bytes of a timing cache, read without TensorRT.

TensorRT has no call that reads a cache's header, and none that says which entry is of which runner;
its own file says both. There is no public description: the layout is that of an editable cache of
10.15.1 made on an L4 (NVIDIA/TensorRT-Model-Connect, families/sam3/timing_cache_data.py): its 103
classic and 173 compiler entries are the 276 that `queryKeys` counted. Numbers are little-endian.

    file    `ptrt`, uint32 version (240), uint64 bytes of the body, uint32 (0), body
    body    size 16, GPU's UUID; size 16, commit id; uint64 count, classic entries;
            uint64 size, text of the compiler; uint64 size, compiled code
    value   uint16 type + 0x8000, uint16 1, the value
    array   uint16 0x8001, a value's four bytes, uint64 count, the elements

A classic entry is its key (four uint32), a uint64 that says how many results follow, and for each
the milliseconds (float), a bool, the runner (uint32), a bool, the tactic (uint64) and two int64.
The compiler's text is `file_format_version=1`, a number (5150), and a line for each entry: the key
(four numbers), the tactic, milliseconds, and tunable parameters that nothing here reads.
"""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtplug.errors import CacheUnusableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST_BYTES = 1 << 30

_MAGIC = b"ptrt"
_FILE = struct.Struct("<4sIQI")
_VERSION = 240
"""Of 10.15; an engine has the same number, as TensorRT's own errors on old engines say."""
_TEXT_VERSION = "file_format_version=1"

_ARRAY = 0x8001
_CHAR, _UINT32, _UINT64, _INT64 = 0x03, 0x06, 0x08, 0x09
_BOOL, _FLOAT, _BYTE, _SIZE = 0x0A, 0x0B, 0x0C, 0x18
_VALUES = {
    _CHAR: "c", _UINT32: "I", _UINT64: "Q", _INT64: "q",
    _BOOL: "B", _FLOAT: "f", _BYTE: "B", _SIZE: "Q",
}  # fmt: skip
_UUID_BYTES = 16
_COMMIT_BYTES = 16
_SMALLEST_ENTRY = 42
"""Bytes of an entry that holds no result: nothing claims more entries than there are bytes for."""

_RUNNERS = {
    0x80000006: "Reformat",
    0x80000009: "CaskConvolution",
    0x8000000D: "Shuffle",
    0x80000022: "LogSoftmaxTopK",
    0x80000023: "Myelin",
    0x8000002F: "CaskPooling",
    0x80000035: "MyelinReformat",
    0x80000049: "PluginV3",
}
"""As VERBOSE logs of 10.16 print them beside their numbers."""

_LINE = re.compile(
    r"(\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,10}) (\d{1,20}) (\d\S{0,30}|inf|nan)((?: \d{1,20})*)"
)

Tuner = Literal["classic", "compiler"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobEntry:
    """One key of a cache with its winner."""

    tuner: Tuner
    key: str
    """`0x` and 32 hexadecimal digits: the 16 bytes in the order in which the file has them."""
    runner: str
    """Such as `CaskConvolution`, or its number where that has no name; empty for the compiler."""
    tactic_hash: str
    """`0x` and lower-case hexadecimal digits."""
    time_ms: float | None
    """None where it is no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBlob:
    """What a timing cache says of itself."""

    version: int
    """Of the layout."""
    uuid: str
    """Of the GPU, as `nvidia-smi -L` prints it."""
    commit: str
    """Of the build of TensorRT, 16 hexadecimal digits."""
    entries: tuple[BlobEntry, ...]
    compiled_bytes: int
    """Of code that the builder compiled and kept beside the entries."""
    warnings: tuple[str, ...]

    def of(self, tuner: Tuner) -> tuple[BlobEntry, ...]:
        """The entries of one tuner."""
        return tuple(e for e in self.entries if e.tuner == tuner)

    @property
    def runners(self) -> dict[str, int]:
        """How many entries each runner has, the most first; the compiler is `compiler`."""
        return dict(Counter(e.runner or e.tuner for e in self.entries).most_common())


def read_blob_file(file: Path) -> CacheBlob:
    """A cache that lies in a file, of trtexec, ONNX Runtime or anyone.

    Raises:
        CacheUnusableError: it cannot be read, or is no timing cache.
    """
    if not file.is_file():
        raise _unusable(str(file), "there is no regular file of that name")
    try:
        size = file.stat().st_size
        if size > LARGEST_BYTES:
            raise _unusable(str(file), f"it has {size:,} bytes, more than {LARGEST_BYTES:,}")
        data = file.read_bytes()
    except OSError as error:
        raise _unusable(str(file), error.strerror or str(error)) from error
    return read_blob(data, str(file))


def read_blob(data: bytes, name: str) -> CacheBlob:
    """The header and every entry of a timing cache.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        CacheUnusableError: it is no timing cache, it is damaged, or of a layout that is not known.
    """
    if not data.startswith(_MAGIC):
        problem = f"it starts with {data[:4]!r}, not {_MAGIC!r}" if data else "it is empty"
        raise _unusable(name, problem)
    if len(data) < _FILE.size:
        raise _unusable(name, f"it is cut short after {len(data)} bytes")
    _, version, size, _ = _FILE.unpack_from(data)
    known = f"layout {version} is not known, only {_VERSION}" if version != _VERSION else ""
    if size != len(data) - _FILE.size:
        says = f"it has {len(data):,} bytes, its header says {size + _FILE.size:,}"
        raise _unusable(name, "; ".join(filter(None, (says, known))))
    try:
        return _body(_Cursor(data=data, at=_FILE.size), version, known)
    except _DamageError as damage:
        raise _unusable(name, "; ".join(filter(None, (str(damage), known)))) from damage


class _DamageError(Exception):
    """What is wrong, and where."""


@dataclass(slots=True)
class _Cursor:
    """A place in the bytes; each call reads one value and moves behind it."""

    data: bytes
    at: int

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def _take(self, form: str) -> tuple[int | float | bytes, ...]:
        size = struct.calcsize(form)
        if size > self.left:
            raise _DamageError(f"it ends at byte {len(self.data):,} in the middle of a value")
        values = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return values

    def _tag(self, kind: int) -> None:
        before = self.at
        if self._take("<HH") != (kind | 0x8000, 1):
            raise _DamageError(f"byte {before:,} begins no value of type 0x{kind:02x}")

    def integer(self, kind: int) -> int:
        """One value of an integer type."""
        self._tag(kind)
        return int(self._take(f"<{_VALUES[kind]}")[0])

    def real(self) -> float:
        """One float."""
        self._tag(_FLOAT)
        return float(self._take("<f")[0])

    def array(self, kind: int, count: int) -> bytes:
        """The bytes of an array that must have so many elements."""
        before = self.at
        if self._take("<H") != (_ARRAY,):
            raise _DamageError(f"byte {before:,} begins no array")
        self._tag(kind)
        found = int(self._take("<Q")[0])
        if found != count:
            raise _DamageError(f"the array at byte {before:,} has {found} elements, not {count}")
        size = count * struct.calcsize(f"<{_VALUES[kind]}")
        if size > self.left:
            raise _DamageError(f"the array at byte {before:,} is longer than the file")
        self.at += size
        return self.data[self.at - size : self.at]

    def sized(self, size_kind: int, kind: int) -> bytes:
        """An array behind its own size."""
        return self.array(kind, self.integer(size_kind))


def _body(cursor: _Cursor, version: int, known: str) -> CacheBlob:
    uuid, commit = cursor.sized(_SIZE, _BYTE), cursor.sized(_SIZE, _BYTE)
    if len(uuid) != _UUID_BYTES or len(commit) != _COMMIT_BYTES:
        raise _DamageError("its header is no UUID and commit id of 16 bytes each")
    if re.fullmatch(rb"[0-9a-f]+", commit) is None:
        raise _DamageError("its commit id is not hexadecimal")
    classic = tuple(_classic_entries(cursor))
    text = cursor.sized(_UINT64, _CHAR)
    compiler = tuple(_compiler_entries(text))
    compiled = cursor.sized(_UINT64, _CHAR)
    if cursor.left:
        raise _DamageError(f"{cursor.left:,} bytes follow its last section")
    return CacheBlob(
        version=version,
        uuid=uuid_text(uuid),
        commit=commit.decode("ascii"),
        entries=classic + compiler,
        compiled_bytes=len(compiled),
        warnings=(f"{known}: it was read as that one",) if known else (),
    )


def uuid_text(raw: bytes) -> str:
    """16 bytes as CUDA's tools print a GPU's UUID."""
    digits = raw.hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _classic_entries(cursor: _Cursor) -> Iterator[BlobEntry]:
    count = cursor.integer(_UINT64)
    if count * _SMALLEST_ENTRY > cursor.left:
        raise _DamageError(f"it claims {count:,} classic entries, more than fit into the file")
    for _ in range(count):
        key = cursor.array(_UINT32, 4)
        for _ in range(cursor.integer(_UINT64)):  # each reads bytes, so the file is the bound
            yield _classic_entry(cursor, key)


def _classic_entry(cursor: _Cursor, key: bytes) -> BlobEntry:
    time_ms = cursor.real()
    cursor.integer(_BOOL)
    runner = cursor.integer(_UINT32)
    cursor.integer(_BOOL)
    tactic = cursor.integer(_UINT64)
    cursor.integer(_INT64)
    cursor.integer(_INT64)
    return BlobEntry(
        tuner="classic",
        key=f"0x{key.hex()}",
        runner=_RUNNERS.get(runner, f"0x{runner:08x}"),
        tactic_hash=f"0x{tactic:x}",
        time_ms=_finite(time_ms),
    )


def _compiler_entries(text: bytes) -> Iterator[BlobEntry]:
    if not text:
        return
    try:
        lines = text.decode("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise _DamageError("the compiler's section is no text") from error
    if lines[0] != _TEXT_VERSION:
        raise _DamageError(f"the compiler's section begins {lines[0][:40]!r}, not {_TEXT_VERSION}")
    if len(lines) < 2 or not lines[1].isdecimal():
        raise _DamageError("the compiler's section has no number in its second line")
    for number, line in enumerate(lines[2:], start=3):
        match = _LINE.fullmatch(line)
        if match is None:
            raise _DamageError(f"line {number} of the compiler's section cannot be read")
        yield _compiler_entry(match, number)


def _compiler_entry(match: re.Match[str], number: int) -> BlobEntry:
    try:
        key = struct.pack("<4I", *map(int, match.groups()[:4]))
        time_ms = float(match[6])
    except (struct.error, ValueError) as error:
        raise _DamageError(f"line {number} of the compiler's section holds no number") from error
    if int(match[5]) >= 1 << 64:
        raise _DamageError(f"line {number} of the compiler's section has a tactic above 64 bits")
    return BlobEntry(
        tuner="compiler",
        key=f"0x{key.hex()}",
        runner="",
        tactic_hash=f"0x{int(match[5]):x}",
        time_ms=_finite(time_ms),
    )


def _finite(time_ms: float) -> float | None:
    return time_ms if math.isfinite(time_ms) and time_ms >= 0 else None


def _unusable(path: str, problem: str) -> CacheUnusableError:
    return CacheUnusableError(
        path=path,
        problem=problem,
        advice="TensorRT's own caches start with `ptrt`, as engines do; was it copied whole?",
    )
