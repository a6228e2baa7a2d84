"""Values on the command line: parsed to ours, refused with words."""

from __future__ import annotations

import re
from enum import Enum

from trtplug.errors import UsageError

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]i?B?|B)?", re.IGNORECASE)
_LARGEST = 2**63
"""Builders take signed 64-bit sizes."""
_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Format(str, Enum):
    """What is written to stdout."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def parse_bytes(text: str, option: str) -> int:
    """`4GiB`, `512M` or `1000000` as bytes; K, M, G and T are powers of 1024.

    Raises:
        UsageError: it is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text!r} is no size", "write 512M, 4GiB or a number of bytes")
    size = float(match[1]) * _UNITS[(match[2] or "")[:1].upper()]
    if not 1 <= size < _LARGEST:
        raise UsageError(f"{option} {text[:40]!r} is not between 1 byte and 8 EiB")
    return int(size)
