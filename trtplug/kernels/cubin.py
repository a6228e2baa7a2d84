"""The machine code in a cubin: an ELF file with a section of instructions for each kernel."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTRUCTION_BYTES = 16
"""From sm_70 on."""

_MAGIC = b"\x7fELF\x02\x01"
"""ELF, 64 bits, little-endian: what every cubin is."""
_FILE_HEADER = struct.Struct("<40xQ10xHHH")
"""Of it: where the section headers stand, how long one is, how many, and which has the names."""
_SECTION_HEADER = struct.Struct("<I20xQQ")
"""Of it: where the section's name stands among the names; where its bytes are, and how many."""


def code_of(cubin: bytes) -> bytes:
    """The instructions of the one kernel in a cubin, as they lie in memory.

    Raises:
        ValueError: the bytes are no cubin, or there is not one kernel in it.
    """
    try:
        found = [data for name, data in _sections(cubin) if name.startswith(b".text.")]
    except struct.error as error:
        raise ValueError(f"a cubin that is cut off: {error}") from error
    if len(found) != 1:
        raise ValueError(f"a cubin with {len(found)} kernels; 1 is wanted")
    if not found[0] or len(found[0]) % INSTRUCTION_BYTES:
        raise ValueError("a cubin whose code is cut off")
    return found[0]


def _sections(cubin: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not cubin.startswith(_MAGIC):
        raise ValueError("no cubin: it does not begin as a 64-bit ELF file")
    start, length, count, names = _FILE_HEADER.unpack_from(cubin)
    headers = [_SECTION_HEADER.unpack_from(cubin, start + i * length) for i in range(count)]
    if names >= count:
        raise ValueError("a cubin without the names of its sections")
    base = headers[names][1]
    for name, offset, size in headers:
        yield cubin[base + name :].partition(b"\0")[0], cubin[offset : offset + size]
