"""What the emulator looks for, and what it found.

Findings of one kind at one line are one finding with a count: a fault in a loop over thousands of
blocks is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.emulator.values import Array

Kind = Literal[
    "race",
    "uninitialised",
    "unfinished_copy",
    "out_of_bounds",
    "misaligned",
    "write_to_input",
    "double_write",
    "unwritten",
    "divergent_barrier",
    "divergent_warp",
    "livelock",
]
"""
- race: two threads touch a byte of shared memory, one of them writing, with no barrier between
- uninitialised: a read of memory that nothing wrote
- unfinished_copy: a read of what a `cp.async` may still be writing
- out_of_bounds, misaligned: of any space
- write_to_input: a store to a buffer that the kernel may only read
- double_write: an output element stored twice; unwritten: an output element never stored
- divergent_barrier: a barrier that not all threads of the block reach; divergent_warp: an
  instruction of the whole warp that not all its threads reach
- livelock: the same state again with nothing changed, or more steps than allowed
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """Which checks run beside the numbers. Bounds and alignment are always checked."""

    races: bool = True
    memory: bool = True
    """Reads of what nothing wrote, unfinished copies (poisoned), double and missing writes."""
    access: bool = True
    """Counts shared-memory waves and global sectors of each access."""
    steps: int = 4_000_000
    """Basic blocks a batch may run before it counts as hung."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, at one instruction."""

    kind: Kind
    line: int
    """Line of the PTX text; 0 where the fault is of no instruction."""
    where: str
    """The first place: `block 3 thread 17`, or a buffer's name."""
    detail: str
    count: int = 1
    """Lanes or bytes at fault, all together."""

    def __str__(self) -> str:
        at = f"line {self.line}, " if self.line else ""
        more = f" ({self.count} in all)" if self.count > 1 else ""
        return f"{self.kind}: {at}{self.where}: {self.detail}{more}"


class Findings:
    """Collects findings while blocks run."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], Finding] = {}
        self.block_ids: Array = np.zeros(0, np.int64)
        """Numbers, in the grid, of the blocks of the batch that runs."""

    def __len__(self) -> int:
        return len(self._found)

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it on to the one already kept."""
        key = (finding.kind, finding.line)
        old = self._found.get(key)
        kept = finding if old is None else replace(old, count=old.count + finding.count)
        self._found[key] = kept

    def lanes(
        self, kind: Kind, line: int, bad: Array, detail: Callable[[int, int], str] | str
    ) -> None:
        """Keep a finding for lanes `bad` ([blocks or 1, threads or 1]), if there is one.

        `detail` may be made from the first lane's row and column.
        """
        where = np.argwhere(bad)
        if not len(where):
            return
        row, column = map(int, where[0])
        text = detail if isinstance(detail, str) else detail(row, column)
        first = f"block {int(self.block_ids[row])} thread {column}"
        self.add(Finding(kind, line, first, text, len(where)))

    def all(self) -> tuple[Finding, ...]:
        """What was found, by line."""
        return tuple(sorted(self._found.values(), key=lambda f: (f.line, f.kind)))
