"""A line on top of each kernel's PTX that says whose it is, and which of them an engine holds.

TensorRT puts the PTX of the tactic that it took into the engine; where it is found there as it was
given, it tells what the builder's log and inspector may not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_MARK = re.compile(rb"// trtplug site=([0-9a-f]{64}) tactic=(\d{1,9})")
_LONGEST_BYTES = 110
_CHUNK_BYTES = 1 << 24


def mark_ptx(ptx: str, site: str, number: int) -> str:
    """The text with the line on top.

    Args:
        ptx: the kernel.
        site: digest of a kit's site.
        number: of the tactic.
    """
    return f"// trtplug site={site} tactic={number}\n{ptx}"


def find_marks(file: Path) -> Mapping[str, tuple[int, ...]]:
    """Site -> numbers of the tactics whose kernels lie in a file.

    Raises:
        OSError: it cannot be read.
    """
    found: dict[str, set[int]] = {}
    with file.open("rb") as stream:
        rest = b""
        while chunk := stream.read(_CHUNK_BYTES):
            data = rest + chunk
            # A mark at the very end may go on in the next chunk, where it is found whole.
            rest = data[-_LONGEST_BYTES:]
            last = len(chunk) < _CHUNK_BYTES
            for match in _MARK.finditer(data):
                if last or match.end() < len(data):
                    found.setdefault(match[1].decode(), set()).add(int(match[2]))
    return {site: tuple(sorted(numbers)) for site, numbers in found.items()}
