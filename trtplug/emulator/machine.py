"""What a running instruction can reach: registers, memories, active lanes, checks.

One `Machine` runs one batch of blocks in lockstep; `run` makes it, instructions change it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from trtplug.emulator.checks import Findings
from trtplug.emulator.counters import Tally
from trtplug.emulator.memory import COMING, WRITTEN, GlobalMemory, RowMemory
from trtplug.emulator.races import RaceLog, Touch
from trtplug.emulator.values import WARP, Array, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What is still to be added to the accumulators of one matrix product."""

    kind: str
    """Type of the accumulators: `f32`, `f16` or `s32`."""
    results: tuple[tuple[int, ...], ...]
    """Their registers, of one `mma` after the other."""
    order: Array
    """Elements of a warp's matrix in order of registers, then lanes."""
    total: Array
    """[warps of the batch, rows, columns] fp32."""

    @property
    def registers(self) -> frozenset[int]:
        """All the accumulators."""
        return frozenset(r for registers in self.results for r in registers)


@dataclass(slots=True)
class Machine:
    """State of one batch of blocks."""

    blocks: int
    """Blocks in the batch: rows of every array."""
    threads: int
    """Threads of a block, rounded up to whole warps: columns of every array."""
    registers: list[Array]
    """By number; see `decode.Layout`."""
    global_memory: GlobalMemory
    shared: RowMemory
    """Row = block."""
    local: RowMemory
    """Row = thread of the batch."""
    findings: Findings
    tally: Tally | None
    """None: nothing is counted per access."""
    races: RaceLog | None
    copies: Copies
    sums: dict[tuple[tuple[int, ...], ...], Sums] = field(default_factory=dict)
    """Sums of tensor-core products that are not in their registers yet, by accumulators."""
    mask: Array | None = None
    """Lanes that run now, broadcast to [blocks, threads]; None: all of them."""
    stores: int = 0
    """Memory changes so far: an iteration that changes nothing repeats for ever."""
    real_threads: int = 0
    """Threads that exist; the last warp may be short of some."""
    row_of: Array = field(init=False)
    """[blocks, 1]: number of the block within the batch."""
    lane: Array = field(init=False)
    """[1, threads]: number of the thread within its block."""
    lane_number: Array = field(init=False)
    """[blocks, threads]: number of the thread within the batch."""
    real: Array = field(init=False)
    """[1, threads]: whether the thread exists."""

    def __post_init__(self) -> None:
        self.row_of = np.arange(self.blocks, dtype=np.int64)[:, None]
        self.lane = np.arange(self.threads, dtype=np.int64)[None]
        self.lane_number = self.row_of * self.threads + self.lane
        self.real = self.lane < (self.real_threads or self.threads)

    @property
    def lanes(self) -> tuple[int, int]:
        """Shape of a full register."""
        return self.blocks, self.threads

    def active_warps(self) -> int:
        """Warps with a lane that runs now."""
        if self.mask is None:
            return self.blocks * self.threads // WARP
        full = spread(self.mask, (self.mask.shape[0], self.threads))
        warps = full.reshape(full.shape[0], -1, WARP).any(axis=2).sum()
        return int(warps) * (self.blocks if full.shape[0] == 1 else 1)


Step = Callable[[Machine], None]
"""One decoded instruction."""


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
        """Land all but the latest `groups_left` committed groups of the lanes that run.

        -1: the open group too.
        """
        running, left = m.mask, []
        for copy in self._pending:
            due = copy.group < self._committed - groups_left
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
                    left.append(replace(copy, mask=rest))
                m.mask = None if lanes.all() else lanes
            m.shared.write(m, copy.addr, copy.value, copy.width, m.row_of, WRITTEN)
            _note(m, copy)
        m.mask, self._pending = running, left


def _note(m: Machine, copy: Copy) -> None:
    if m.races is not None:
        m.races.note(Touch(True, copy.addr, m.mask, copy.width, copy.line))
