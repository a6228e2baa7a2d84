"""What an engine is valid for: backend, its version, and an SM.

A target has a string form that parses back: `rtx-1.7:sm_89`. It is used on the command line,
in file names (with `-` for `:`), in reports and in tests.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trtplug.errors import UsageError

_SM = re.compile(r"sm_?(\d{2,3})", re.IGNORECASE)
_TARGET = re.compile(r"(?P<backend>[a-z]+)-(?P<version>\d+(?:\.\d+)*):(?P<sm>sm_\d{2,3})")


@dataclass(frozen=True, slots=True, order=True)
class Sm:
    """A compute capability, such as `sm_89` for 8.9."""

    number: int

    def __str__(self) -> str:
        return f"sm_{self.number}"

    @property
    def major(self) -> int:
        """8 for sm_89."""
        return self.number // 10

    @property
    def minor(self) -> int:
        """9 for sm_89."""
        return self.number % 10


def parse_sm(text: str) -> Sm | None:
    """`sm_89` or `sm89` as an Sm; None for anything else."""
    match = _SM.fullmatch(text.strip())
    return Sm(int(match.group(1))) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Backend, its major.minor version, and an SM."""

    backend: str
    version: str
    sm: Sm

    def __str__(self) -> str:
        return f"{self.backend}-{self.version}:{self.sm}"

    @property
    def file_part(self) -> str:
        """The string form as file names have it, e.g. `rtx-1.7-sm_89`."""
        return str(self).replace(":", "-")


def parse_target(text: str) -> Target:
    """The inverse of `str(target)`.

    Raises:
        UsageError: the text is not of the form `rtx-1.7:sm_89`.
    """
    match = _TARGET.fullmatch(text)
    sm = parse_sm(match["sm"]) if match else None
    if match is None or sm is None:
        raise UsageError(f"{text!r} is not a target", "a target looks like rtx-1.7:sm_89")
    return Target(backend=match["backend"], version=match["version"], sm=sm)
