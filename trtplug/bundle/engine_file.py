"""An engine file: its header, its digest, and its canonical digest.

Header of 64 bytes, as seen in TensorRT-RTX 1.7 files: 4 bytes magic that hold `trt`, at byte 16 the
size of the file (little-endian, 64 bits), at byte 24 the builder's version, a byte a part.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from trtplug.errors import FileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


HEADER_BYTES = 64

_LONGEST_PREFIX = 1 << 20

_GENERATED = (b"__mye", b"__i64_inst_combine_temp_")
"""Names that the compiler makes up, by a counter that may start elsewhere in each process."""

_COUNTER = re.compile(rb"(__(?:mye|i64_inst_combine_temp_))(\d+)")
"""They with their counter; one literal beginning makes the search three times as fast."""

_BEGUN = re.compile(
    b"|".join(
        [re.escape(g[:n]) + rb"\Z" for g in _GENERATED for n in range(1, len(g))]
        + [g + rb"\d*\Z" for g in _GENERATED]
    )
)
"""A generated name, or the beginning of one, at the end of a piece."""

_LONGEST_NAME = 64
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHeader:
    """The first 64 bytes of an engine file, decoded."""

    magic: str
    total_bytes: int
    """Size of the engine in the header, header included."""
    builder_version: str
    """Such as `1.7.1.116`."""
    complete: bool
    """Whether the file has the size in its header."""
    prefix_bytes: int
    """Bytes before the header: some tools put a JSON text of their own in front of an engine, and
    TensorRT then refuses the file."""


def read_header(file: Path) -> EngineHeader | None:
    """Header of an engine file; None for a file of another kind.

    Raises:
        FileUnreadableError: it cannot be read.
    """
    try:
        with file.open("rb") as stream:
            prefix = _prefix_bytes(stream)
            stream.seek(prefix)
            head = stream.read(HEADER_BYTES)
        size = file.stat().st_size
    except OSError as error:
        problem = error.strerror or str(error)
        raise FileUnreadableError(path=str(file), problem=problem.lower()) from error
    if len(head) < HEADER_BYTES or b"trt" not in head[:4] or head[4:8] != bytes(4):
        return None
    (total,) = struct.unpack_from("<Q", head, 16)
    return EngineHeader(
        magic=head[:4].decode("ascii", "replace"),
        total_bytes=total,
        builder_version=".".join(str(b) for b in head[24:28]),
        complete=prefix + total == size,
        prefix_bytes=prefix,
    )


def _prefix_bytes(stream: BinaryIO) -> int:
    """Bytes of a JSON text with its length in 4 bytes before it (Ultralytics writes one), or 0."""
    start = stream.read(5)
    if len(start) < 5 or start[4:] != b"{":
        return 0
    (length,) = struct.unpack("<I", start[:4])
    stream.seek(4)
    text = stream.read(length) if length <= _LONGEST_PREFIX else b""
    return 4 + length if len(text) == length and text.endswith(b"}") else 0


def canonical_sha256(file: Path) -> str:
    """Digest of an engine with the counters in generated names renumbered in order of appearance.

    Two builds that differ only in where such a counter started agree in it.
    """
    digest = hashlib.sha256()
    seen: dict[bytes, bytes] = {}
    with file.open("rb") as stream:
        rest = b""
        while chunk := stream.read(_CHUNK_BYTES):
            data = rest + chunk if rest else chunk
            # A name that may go on in the next chunk is left for it.
            cut = _BEGUN.search(data, max(0, len(data) - _LONGEST_NAME))
            end = cut.start() if cut else len(data)
            _digest_renumbered(data, end, seen, digest.update)
            rest = data[end:]
        _digest_renumbered(rest, len(rest), seen, digest.update)
    return digest.hexdigest()


def _digest_renumbered(
    data: bytes, end: int, seen: dict[bytes, bytes], update: Callable[[bytes | memoryview], None]
) -> None:
    """Piece by piece: to put a copy of an engine together takes longer than to hash it."""
    view, begin = memoryview(data), 0
    for match in _COUNTER.finditer(data, 0, end):
        update(view[begin : match.start()])
        name = match[0]
        if name not in seen:
            seen[name] = b"%s#%d" % (match[1], len(seen))
        update(seen[name])
        begin = match.end()
    update(view[begin:end])
