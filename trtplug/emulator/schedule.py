"""Which lanes run which block next, and when they wait for each other.

Of all lanes, those at the block that comes first in the text run first: others wait where paths
meet again, so that lanes that went apart come together by themselves. Barriers open when nothing
else can run. A state that comes again with memory unchanged is a livelock, proven; a batch that
runs more blocks than allowed is taken for one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trtplug.emulator.checks import Checks
from trtplug.emulator.decode import Code, Program
from trtplug.emulator.machine import Machine
from trtplug.emulator.ptx import Immediate
from trtplug.emulator.tensor_core import settle
from trtplug.emulator.values import Array

_NONE: Array = np.zeros((1, 1), np.uint32)


@dataclass(slots=True)
class _Parked:
    """Lanes that wait at a barrier."""

    code: Code
    mask: Array


@dataclass(slots=True)
class Scheduler:
    """Runs one batch of blocks to its end."""

    machine: Machine
    program: Program
    checks: Checks
    warps_run: list[int] = field(default_factory=list)
    """Warps that ran each block of code."""
    _ready: dict[int, Array | None] = field(default_factory=dict)
    """Lanes at the start of each block; None: all that are."""
    _parked: dict[int, _Parked] = field(default_factory=dict)
    _alive: Array = field(default_factory=lambda: _NONE)
    _whole: bool = True
    """Whether no lane has gone yet."""
    _snapshot: tuple[int, int, list[Array], Array | None] | None = None
    _steps: int = 0
    _next_snapshot: int = 1024

    def run(self) -> None:
        """Run every lane until it returns, or until nothing can go on."""
        self.warps_run = [0] * len(self.program.codes)
        self._whole = bool(self.machine.real.all())
        self._alive = self.machine.real
        self._ready = {0: None if self._whole else self._alive}
        while self._ready or self._parked:
            if not self._ready and not self._open_barriers():
                return
            index = min(self._ready)
            mask = self._ready.pop(index)
            if index >= len(self.program.codes):
                self._leave(mask)
                continue
            if self._hung(index, mask):
                return
            self._step(self.program.codes[index], mask)

    # -- one block

    def _step(self, code: Code, mask: Array | None) -> None:
        m, r = self.machine, self.machine.registers
        m.mask = mask
        apart = bool(self._ready or self._parked)
        if apart:
            settle(m)
        old = [(d, r[d]) for d in code.keep] if apart else []
        for step, last in code.steps:
            step(m)
            for d in last:
                r[d] = _NONE
        if apart:
            settle(m)
        for d, before in old:
            # Where no lane had written the register there is nothing to keep, nor a type of it.
            if mask is not None and before is not _NONE and r[d] is not before:
                r[d] = np.where(mask, r[d], before.view(r[d].dtype))
        self.warps_run[code.index] += m.active_warps()
        self._go_on(code, mask)
        if not apart:
            for d in code.dead:
                r[d] = _NONE

    def _go_on(self, code: Code, mask: Array | None) -> None:
        after = code.index + 1
        if code.end is None:
            self._arrive(after, mask)
        elif code.end.op in ("bar", "barrier"):
            full = self.machine.real if mask is None else mask
            held = self._parked.get(code.index)
            lanes = full if held is None else held.mask | full
            self._parked[code.index] = _Parked(code, lanes)
        else:
            taken, rest = self._split(code, mask)
            if code.end.op == "bra":
                if taken is not False:
                    self._arrive(code.targets[0], None if taken is True else taken)
            elif taken is not False:
                self._leave(None if taken is True else taken)
            if rest is not False:
                self._arrive(after, None if rest is True else rest)

    def _split(self, code: Code, mask: Array | None) -> tuple[Array | bool, Array | bool]:
        """Lanes that take the jump and those that do not; True: all there are, False: none."""
        everyone: Array | bool = True if mask is None else mask
        if code.predicate is None:
            return everyone, False
        on = self.machine.registers[code.predicate]
        on = ~on if code.negated else on
        if on.size == 1:
            return (everyone, False) if on[0, 0] else (False, everyone)
        taken = on if mask is None else on & mask
        rest = ~on if mask is None else ~on & mask
        if not rest.any():
            return everyone, False
        if not taken.any():
            return False, everyone
        return taken, rest

    def _arrive(self, index: int, mask: Array | None) -> None:
        if index not in self._ready:
            self._ready[index] = mask
            return
        held = self._ready[index]
        if held is None or mask is None:
            self._ready[index] = None
            return
        self._ready[index] = self._tidy(held | mask)

    def _tidy(self, mask: Array) -> Array | None:
        """A mask in its smallest shape; None where it is every lane."""
        if self._whole and mask.all():
            return None
        if mask.shape[0] > 1 and (mask == mask[:1]).all():
            return mask[:1]
        return mask

    def _leave(self, mask: Array | None) -> None:
        self._whole = False
        gone = self._alive if mask is None else mask
        self._alive = self._alive & ~gone

    # -- barriers

    def _open_barriers(self) -> bool:
        """Let blocks go on whose lanes are all at their barrier; False: none can."""
        opened = False
        if len(self._parked) == 1:
            (index, held), *_ = self._parked.items()
            missing = self._alive & ~held.mask
            if not missing.any() and _barrier(held.code)[1] is None:
                self._exited_before(held)
                self._release(index, held.mask, None)
                return True
        for name in sorted({_barrier(p.code)[0] for p in self._parked.values()}):
            opened |= self._open(name)
        if not opened:
            self._stuck()
        return opened

    def _open(self, name: int) -> bool:
        """Open barrier `name` in the blocks whose lanes are all there."""
        m = self.machine
        places = {i: p for i, p in self._parked.items() if _barrier(p.code)[0] == name}
        together = np.zeros(m.lanes, bool)
        for held in places.values():
            together |= held.mask
        alive = np.broadcast_to(self._alive, m.lanes)
        _, wanted = _barrier(next(iter(places.values())).code)
        if wanted is not None:
            full = together.sum(axis=1) >= wanted
        else:
            full = together.any(axis=1) & ~(alive & ~together).any(axis=1)
        rows = full[:, None]
        if not full.any():
            return False
        split = [rows & p.mask for p in places.values()]
        if wanted is None:
            self._apart(places, split)
        for (index, held), lanes in zip(places.items(), split, strict=True):
            if lanes.any():
                self._exited_before(held)
                self._release(index, lanes, None if full.all() else rows)
        return True

    def _release(self, index: int, lanes: Array, rows: Array | None) -> None:
        held = self._parked.pop(index)
        rest = held.mask & ~lanes
        if rest.any():
            self._parked[index] = _Parked(held.code, rest)
        if self.machine.races is not None:
            self.machine.races.barrier(rows)
        self._arrive(index + 1, self._tidy(lanes))

    def _apart(self, places: dict[int, _Parked], split: list[Array]) -> None:
        """Report threads that wait at one barrier while others of their block wait at another."""
        before: tuple[Code, Array] | None = None
        for held, lanes in zip(places.values(), split, strict=True):
            if before is not None:
                both = lanes & before[1].any(axis=1, keepdims=True)
                text = f"waits here while others of its block wait at line {_line(before[0])}"
                self.machine.findings.lanes("divergent_barrier", _line(held.code), both, text)
            before = held.code, lanes

    def _exited_before(self, held: _Parked) -> None:
        """Threads that returned while others of their block wait."""
        if self._whole or _barrier(held.code)[1] is not None:
            return
        gone = self.machine.real & ~self._alive
        bad = held.mask.any(axis=1, keepdims=True) & gone
        text = "has returned while others of its block wait here"
        self.machine.findings.lanes("divergent_barrier", _line(held.code), bad, text)

    def _stuck(self) -> None:
        for held in self._parked.values():
            text = "waits here for ever"
            self.machine.findings.lanes("divergent_barrier", _line(held.code), held.mask, text)

    # -- livelock

    def _hung(self, index: int, mask: Array | None) -> bool:
        """Whether this state was here before, or too many blocks have run."""
        self._steps += 1
        if self._steps > self.checks.steps:
            self._report_hung(index, mask, f"still runs after {self.checks.steps} steps")
            return True
        if self._snapshot is not None and self._same(index, mask):
            self._report_hung(index, mask, "comes here again with nothing changed")
            return True
        if self._steps >= self._next_snapshot:
            # Brent's way to find a cycle: compare with a state that moves on ever more rarely.
            self._next_snapshot *= 2
            registers = list(self.machine.registers)
            self._snapshot = (index, self.machine.stores, registers, mask)
        return False

    def _same(self, index: int, mask: Array | None) -> bool:
        assert self._snapshot is not None
        at, stores, registers, old = self._snapshot
        if at != index or stores != self.machine.stores or not _equal(mask, old):
            return False
        now = self.machine.registers
        return all(a is b or _equal(a, b) for a, b in zip(now, registers, strict=True))

    def _report_hung(self, index: int, mask: Array | None, text: str) -> None:
        lanes = self.machine.real if mask is None else mask
        self.machine.findings.lanes("livelock", _line(self.program.codes[index]), lanes, text)


def _barrier(code: Code) -> tuple[int, int | None]:
    """Number of the barrier that ends a block, and the threads it waits for where it says so."""
    assert code.end is not None
    number, *count = (o.value for o in code.end.operands if isinstance(o, Immediate))
    return number, count[0] if count else None


def _line(code: Code) -> int:
    """Line of the barrier or jump that ends a block; 0 where it falls through."""
    return code.end.line if code.end is not None else 0


def _equal(a: Array | None, b: Array | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.tobytes() == b.tobytes()
