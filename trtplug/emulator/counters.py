"""What a run counted: instructions by kind, shared-memory waves, global sectors, multiply-adds.

Waves: a shared-memory access moves 128 bytes at a time, 4 from each of 32 banks; lanes that want
different words of one bank wait for each other. 8-byte accesses go by half warps and 16-byte ones
by quarters, so that their ideal is 2 and 4 waves. Sectors: global memory moves 32 bytes at a time;
the ideal is the distinct bytes asked for, divided by 32.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from trtplug.emulator.values import WARP, Array, spread

SECTOR_BYTES = 32
_WAVE_BYTES = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCount:
    """One memory instruction over the whole run."""

    line: int
    opcode: str
    requests: int
    """Warps that ran it."""
    units: int
    """Waves of shared memory, or sectors of global memory."""
    ideal: int
    """The fewest units that could have done."""

    @property
    def ratio(self) -> float:
        """Units over ideal: 1.0 is perfect."""
        return self.units / self.ideal if self.ideal else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """Totals of a run, over the blocks that were run."""

    blocks: int
    warp_instructions: int
    by_opcode: dict[str, int]
    """Warp-instructions of each opcode as written, most frequent first."""
    multiply_adds: int
    """Of single elements, in `mma` and in scalar or packed `fma`."""
    shared: tuple[AccessCount, ...]
    global_: tuple[AccessCount, ...]

    @property
    def shared_ratio(self) -> float:
        """Shared-memory waves over their ideal, all accesses together."""
        return _ratio(self.shared)

    @property
    def global_ratio(self) -> float:
        """Global sectors over their ideal, all accesses together."""
        return _ratio(self.global_)


def _ratio(counts: tuple[AccessCount, ...]) -> float:
    ideal = sum(c.ideal for c in counts)
    return sum(c.units for c in counts) / ideal if ideal else 1.0


@dataclass(slots=True)
class Tally:
    """Counts while blocks run."""

    threads: int
    blocks: int
    found: dict[tuple[str, int], list[int]]
    """(space, line): requests, units, ideal; of all batches of a run."""
    _seen: dict[tuple[int, bytes, bytes], tuple[int, int, int]] = field(default_factory=dict)
    """Patterns met before: a loop asks the same over and over, shifted by whole waves."""

    def count(self, space: str, line: int, addr: Array, mask: Array | None, width: int) -> None:
        """Count an access to `shared` or `global` memory, of `width` bytes at `addr` a lane."""
        rows = max(len(addr), 1 if mask is None else len(mask))
        times = self.blocks if rows == 1 else 1
        if space == "shared":
            got = self._waves(addr, mask, rows, width)
        else:
            got = sectors(self._lanes(addr, mask, rows), width)
        total = self.found.setdefault((space, line), [0, 0, 0])
        for i, value in enumerate(got):
            total[i] += value * times

    def _waves(
        self, addr: Array, mask: Array | None, rows: int, width: int
    ) -> tuple[int, int, int]:
        if rows > 1:
            return waves(self._lanes(addr, mask, rows), width)
        relative = addr - (int(addr.min()) & -_WAVE_BYTES)
        key = (width, relative.tobytes(), b"" if mask is None else mask.tobytes())
        if key not in self._seen:
            self._seen[key] = waves(self._lanes(relative, mask, rows), width)
        return self._seen[key]

    def _lanes(self, addr: Array, mask: Array | None, rows: int) -> Array:
        """Addresses by warp, [warps, 32]; -1 for lanes that do not run."""
        full = addr if mask is None else np.where(mask, addr, -1)
        return spread(full, (rows, self.threads)).reshape(-1, WARP)


def waves(lanes: Array, width: int) -> tuple[int, int, int]:
    """Requests, waves and ideal waves of shared accesses; `lanes` [warps, 32] bytes, -1 = off."""
    size = max(width, 4)
    per_wave = _WAVE_BYTES // size
    units = np.sort(np.where(lanes < 0, -1, lanes // size).reshape(-1, per_wave), axis=1)
    first = _firsts(units)
    row = np.nonzero(first)[0]
    depth = np.bincount(row * per_wave + units[first] % per_wave, minlength=units.size)
    most = depth.reshape(-1, per_wave).max(axis=1)
    return int((lanes >= 0).any(axis=1).sum()), int(most.sum()), int((most > 0).sum())


def sectors(lanes: Array, width: int) -> tuple[int, int, int]:
    """Requests, sectors and ideal sectors of global accesses; `lanes` [warps, 32] bytes."""
    # In units of the width, -1 stays -1; in order of address, sectors are in order as well.
    units = np.sort(lanes >> (width.bit_length() - 1), axis=1)
    elements = _firsts(units).sum(axis=1)
    ideal = -(-elements * width // SECTOR_BYTES)
    per_sector = (SECTOR_BYTES // width).bit_length() - 1
    return (
        int((units[:, -1] >= 0).sum()),
        int(_firsts(units >> per_sector).sum()),
        int(ideal.sum()),
    )


def _firsts(ordered: Array) -> Array:
    """Where rows in order hold a new value that is not -1."""
    new = ordered >= 0
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return new
