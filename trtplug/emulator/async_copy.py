"""`cp.async`: copies that land when their group is waited for, not before.

Until then the place they go to is poisoned and marked, so that a read of it is a finding and its
numbers are NaN. For races a copy counts as a write where it is issued and where it is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.memory import COMING, WRITTEN
from trtplug.emulator.races import Touch
from trtplug.emulator.values import Array

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine


@dataclass(slots=True)
class Copy:
    """One `cp.async` of many lanes, under way."""

    addr: Array
    value: Array
    width: int
    line: int
    mask: Array | None
    group: Array
    """Group it belongs to, of each lane."""


class Copies:
    """Copies under way, and the number of groups each lane has committed."""

    def __init__(self) -> None:
        self._pending: list[Copy] = []
        self._committed: Array = np.zeros((1, 1), np.int32)

    def start(self, m: Machine, addr: Array, value: Array, width: int, line: int) -> None:
        """Begin a copy of `value` to shared bytes at `addr`, already checked."""
        copy = Copy(addr, value, width, line, m.mask, self._committed)
        self._pending.append(copy)
        _note(m, copy)
        if m.shared.state is not None:
            poison = np.full((1, width), 0xFF, np.uint8).view(m.shared.view(width).dtype)
            m.shared.write(m, addr, poison, width, m.row_of, COMING)

    def commit(self, m: Machine) -> None:
        """Close the open group of the lanes that run."""
        step = 1 if m.mask is None else m.mask.astype(np.int32)
        self._committed = self._committed + step

    def wait(self, m: Machine, groups_left: int) -> None:
        """Land all but the latest `groups_left` committed groups of the lanes that run."""
        self._land(m, self._committed - groups_left)

    def wait_all(self, m: Machine) -> None:
        """Land everything of the lanes that run, committed or not."""
        self._land(m, self._committed + 1)

    def _land(self, m: Machine, limit: Array) -> None:
        running, left = m.mask, []
        for copy in self._pending:
            due = copy.group < limit
            if running is None and due.all():
                m.mask = copy.mask
            else:
                lanes = due if copy.mask is None else due & copy.mask
                lanes = lanes if running is None else lanes & running
                rest = ~lanes if copy.mask is None else ~lanes & copy.mask
                if not lanes.any():
                    left.append(copy)
                    continue
                if rest.any():
                    left.append(
                        Copy(copy.addr, copy.value, copy.width, copy.line, rest, copy.group)
                    )
                m.mask = None if lanes.all() else lanes
            m.shared.write(m, copy.addr, copy.value, copy.width, m.row_of, WRITTEN)
            _note(m, copy)
        m.mask, self._pending = running, left


def _note(m: Machine, copy: Copy) -> None:
    if m.races is not None:
        m.races.note(
            Touch(writes=True, addr=copy.addr, mask=m.mask, width=copy.width, line=copy.line)
        )
