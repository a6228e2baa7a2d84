"""One kernel's source: generated text and the files of `plugins/` that it includes.

Its digest covers all of it, so that a kernel is compiled again exactly when a line of it changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.resources import resource_folder
from trtplug.store import key_of

if TYPE_CHECKING:
    from pathlib import Path

_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """CUDA C++ with one `extern "C"` kernel."""

    name: str
    """The kernel's name."""
    text: str
    headers: tuple[tuple[str, str], ...]
    """Name as included -> text, in order of names; only those that the text reaches."""

    @property
    def digest(self) -> str:
        """SHA-256 over name, text and headers."""
        return key_of({"name": self.name, "text": self.text, "headers": dict(self.headers)})


def assemble(name: str, text: str, folder: Path | None = None) -> KernelSource:
    """A source with all that it includes, by and by, from `plugins/`.

    Raises:
        FileNotFoundError: an include that `plugins/` does not have.
    """
    root = folder or resource_folder("plugins")
    found: dict[str, str] = {}
    todo = _INCLUDE.findall(text)
    while todo:
        header = todo.pop()
        if header not in found:
            found[header] = (root / header).read_text(encoding="utf-8")
            todo += _INCLUDE.findall(found[header])
    return KernelSource(name=name, text=text, headers=tuple(sorted(found.items())))
