"""Races in shared memory: two threads, one byte, one of them writing, no barrier between.

Accesses are only noted while blocks run, and judged when a barrier ends the epoch: every race is
then a word that one thread wrote and another touched in the same epoch, so that readers need no
record of their own. Where all blocks did the same (addresses depend on the thread alone), one
is compared for all.

`__syncwarp` orders the threads of a warp: pairs within one warp are judged between two of them,
pairs of different warps over the whole epoch. Its mask is not looked at: it counts for whole warps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from trtplug.emulator.checks import Finding, Findings
from trtplug.emulator.values import WARP, Array, spread

_TID_BITS = 10
_TID = (1 << _TID_BITS) - 1


@dataclass(frozen=True, slots=True)
class Touch:
    """One access of one instruction."""

    writes: bool
    addr: Array
    """Bytes, [blocks or 1, threads or 1]."""
    mask: Array | None
    width: int
    line: int


class RaceLog:
    """The accesses of the epoch so far; its end judges them."""

    def __init__(self, findings: Findings, blocks: int, threads: int, size: int) -> None:
        self._findings = findings
        self._blocks = blocks
        self._threads = threads
        self._thread = np.arange(threads)[None]
        self._size = size
        self._touches: list[Touch] = []
        self._cuts: list[int] = []
        """Indices in the list at which a warp barrier was."""

    def note(self, touch: Touch) -> None:
        """Keep one access; a copy of its address is not made, since registers are never changed."""
        self._touches.append(touch)

    def warp_barrier(self) -> None:
        """Threads of each warp have met."""
        self._cuts.append(len(self._touches))

    def barrier(self, released: Array | None) -> None:
        """End the epoch of the blocks in `released` ([blocks, 1] bool; None: of all)."""
        touches, cuts = self._touches, [*self._cuts, len(self._touches)]
        self._touches, self._cuts = [], []
        if released is not None:
            kept = [_restricted(t, ~released) for t in touches]
            self._touches, self._cuts = kept, cuts[:-1]
            touches = [_restricted(t, released) for t in touches]
        if any(t.writes for t in touches):
            self._judge(touches, cuts)

    def _judge(self, touches: list[Touch], cuts: list[int]) -> None:
        same_threads_shift = 0
        if len(cuts) > 1:
            start = 0
            for cut in cuts:
                self._compare(touches[start:cut], shift=same_threads_shift)
                start = cut
            same_threads_shift = WARP.bit_length() - 1
        self._compare(touches, shift=same_threads_shift)

    def _compare(self, touches: list[Touch], shift: int) -> None:
        """Find pairs whose thread numbers, less their low `shift` bits, differ."""
        touches = _near_writes(touches)
        if not touches:
            return
        unit = min(t.width for t in touches)
        alike = all(len(t.addr) == 1 and (t.mask is None or len(t.mask) == 1) for t in touches)
        rows = 1 if alike else self._blocks
        owner = np.full((rows, self._size // unit + 1), -1, np.int64)
        laid = [self._laid(t, rows, unit, owner.shape[1]) for t in touches]
        for number, (touch, (place, thread)) in enumerate(zip(touches, laid, strict=True)):
            if touch.writes:
                owner.reshape(-1)[place] = (number << _TID_BITS) | thread
        for touch, (place, thread) in zip(touches, laid, strict=True):
            held = owner.reshape(-1)[place]
            bad = (held >= 0) & (((held & _TID) ^ thread) >> shift != 0)
            if bad.any():
                first = int(np.flatnonzero(bad)[0])
                other = touches[int(held[first]) >> _TID_BITS]
                block = self._findings.block_ids[int(place[first]) // owner.shape[1]]
                detail = (
                    f"{'writes' if touch.writes else 'reads'} shared memory that thread "
                    f"{int(held[first]) & _TID} writes at line {other.line}, "
                    "with no barrier between"
                )
                where = f"block {int(block)} thread {int(thread[first])}"
                self._findings.add(Finding("race", touch.line, where, detail, int(bad.sum())))

    def _laid(self, touch: Touch, rows: int, unit: int, stride: int) -> tuple[Array, Array]:
        """Units touched, and by whom: flat arrays over lanes and units of each."""
        shape = (rows, self._threads)
        base = spread(touch.addr // unit, shape)
        if rows > 1:
            base = base + np.arange(rows)[:, None] * stride
        thread = spread(self._thread, shape)
        if touch.mask is not None:
            mask = spread(touch.mask, shape)
            base, thread = base[mask], thread[mask]
        count = touch.width // unit
        if count == 1:
            return base.ravel(), thread.ravel()
        place = base.reshape(-1, 1) + np.arange(count)
        return place.ravel(), thread.ravel().repeat(count)


def _near_writes(touches: list[Touch]) -> list[Touch]:
    """Those that may meet a write, by the range of their addresses.

    In a pipeline most do not: copies go to one stage while others are read.
    """
    ranges = [(int(t.addr.min()), int(t.addr.max()) + t.width) for t in touches]
    written = [r for r, t in zip(ranges, touches, strict=True) if t.writes]
    if not written:
        return []
    low, high = min(r[0] for r in written), max(r[1] for r in written)
    return [t for t, r in zip(touches, ranges, strict=True) if r[0] < high and r[1] > low]


def _restricted(touch: Touch, rows: Array) -> Touch:
    return replace(touch, mask=rows if touch.mask is None else touch.mask & rows)
