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

MIN_BLOCKS = "TRTPLUG_MIN_BLOCKS"
"""Macro: the blocks that an SM is to hold at a time."""

_INCLUDE = re.compile(r'^\s*#include "([^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSource:
    """CUDA C++ with one `extern "C"` kernel."""

    name: str
    """The kernel's name."""
    text: str
    headers: tuple[tuple[str, str], ...]
    """Name as included -> text, in order of names; only those that the text reaches."""
    min_blocks: tuple[int, ...] = ()
    """Values of the macro `MIN_BLOCKS`, to be tried in order until a kernel spills nothing.

    A kernel gives it to `__launch_bounds__`, and ptxas fills all the registers that it leaves. Now
    and then it overfills them by a few, and at any other limit, even a lower one, it does not.
    """

    @property
    def digest(self) -> str:
        """SHA-256 over everything."""
        return key_of(
            {
                "name": self.name,
                "text": self.text,
                "headers": dict(self.headers),
                "min_blocks": self.min_blocks,
            }
        )


def assemble(
    name: str, text: str, folder: Path | None = None, min_blocks: tuple[int, ...] = ()
) -> KernelSource:
    """A source with all that it includes, by and by, from `plugins/`.

    Args:
        name: of the kernel.
        text: of the source.
        folder: where includes are, if not in `plugins/`.
        min_blocks: as in `KernelSource`.

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
    headers = tuple(sorted(found.items()))
    return KernelSource(name=name, text=text, headers=headers, min_blocks=min_blocks)
