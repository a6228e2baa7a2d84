"""Values on the command line: parsed to ours, refused with words."""

from __future__ import annotations

import math
import re
from enum import Enum
from pathlib import Path

import click

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


def path(text: str) -> Path:
    """A file or a folder, as the type of an argument; whether it is there is asked later.

    Raises:
        UsageError: no system takes it.
    """
    if not text.strip():
        raise UsageError("a path is empty", "an unset variable of a script, perhaps")
    if "\0" in text:
        raise UsageError(f"the path {text!r} holds a null byte", "leave it out")
    return Path(text)


class NumberRange(click.FloatRange):
    """As click's, but `nan` is in no range."""

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """A number of the range; anything else is refused as click does."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}", param, ctx)
        return number


model_argument = click.argument("model", type=path)
format_option = click.option(
    "--format",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    help="Form of the result on stdout.  [default: text]",
)
fold_overridable_option = click.option(
    "--fold-overridable/--keep-overridable",
    default=None,
    help="Treat initializers that are graph inputs too as constants, or leave them.  "
    "[default: constants where the file is older than IR 4]",
)


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
