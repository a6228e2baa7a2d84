"""One kernel's source: generated text and the files of `plugins/` that it includes.

Its digest covers all of it, so that a kernel is compiled again exactly when a line of it changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from trtplug.settings import resource_folder
from trtplug.store import key_of

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

    digest: str = field(init=False)
    """SHA-256 over everything."""

    def __post_init__(self) -> None:
        """Takes the digest once: it is asked for often, and the headers are long."""
        everything = {
            "name": self.name,
            "text": self.text,
            "headers": dict(self.headers),
            "min_blocks": self.min_blocks,
        }
        object.__setattr__(self, "digest", key_of(everything))


@dataclass(frozen=True, slots=True, kw_only=True)
class Headers:
    """The files that sources include, each read once in the life of this value."""

    root: Path
    _read: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Name -> text, and the names that it includes itself."""

    def reached_from(self, text: str) -> tuple[tuple[str, str], ...]:
        """Name -> text of all that a source includes, by and by, in order of names.

        Raises:
            FileNotFoundError: an include that is not there.
        """
        found: dict[str, str] = {}
        todo = list(_INCLUDE.findall(text))
        while todo:
            header = todo.pop()
            if header not in found:
                found[header], names = self._header(header)
                todo += names
        return tuple(sorted(found.items()))

    def _header(self, name: str) -> tuple[str, tuple[str, ...]]:
        if name not in self._read:
            text = (self.root / name).read_text(encoding="utf-8")
            self._read[name] = text, tuple(_INCLUDE.findall(text))
        return self._read[name]


def plugin_headers() -> Headers:
    """Those of `plugins/`."""
    return Headers(root=resource_folder("plugins"))


def assemble(
    name: str,
    text: str,
    headers: Headers | None = None,
    min_blocks: tuple[int, ...] = (),
) -> KernelSource:
    """A source with all that it includes.

    Args:
        name: of the kernel.
        text: of the source.
        headers: what it may include; what is in `plugins/` now, if nothing is said.
        min_blocks: as in `KernelSource`.

    Raises:
        FileNotFoundError: an include that is not there.
    """
    reached = (headers or plugin_headers()).reached_from(text)
    return KernelSource(name=name, text=text, headers=reached, min_blocks=min_blocks)
