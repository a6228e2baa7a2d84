"""Global memory: buffers, each in an address window of its own.

An offset gone wrong then lands in no other buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.memory import (
    EMPTY,
    FIRST_BUFFER,
    PAD,
    POISON,
    WINDOW_BITS,
    WRITTEN,
    by_lane,
    differs,
    first_active,
    pattern,
    report,
)
from trtplug.emulator.values import U8, UNSIGNED, Array

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine


@dataclass(slots=True)
class Region:
    """One buffer of global memory."""

    name: str
    base: int
    bytes: int
    data: Array
    """Padded, so that a view of any width covers it."""
    writable: bool
    state: Array | None
    """None: all of it is written, or nobody asks."""
    once: bool
    """An output: each element is to be written exactly once."""
    views: dict[int, Array] = field(default_factory=dict)
    marks: dict[int, Array] = field(default_factory=dict)
    """Scratch by width: who wrote last, to see two lanes of one store meet."""

    def view(self, width: int) -> Array:
        """The bytes as elements of `width`."""
        if width not in self.views:
            self.views[width] = self.data.view(UNSIGNED[width])
        return self.views[width]


class GlobalMemory:
    """Buffers by address window."""

    def __init__(self) -> None:
        self.regions: dict[int, Region] = {}

    def add(self, name: str, data: bytes | Array, *, role: str, checked: bool) -> Region:
        """Put a buffer into a window of its own; `role` is `input`, `output` or `both`."""
        content = np.frombuffer(data, U8) if isinstance(data, bytes) else data
        size = content.size
        held = np.zeros(-(-size // PAD) * PAD + PAD, U8)
        held[:size] = content
        window = FIRST_BUFFER + len(self.regions)
        state = None
        if checked and role == "output":
            state = np.zeros(held.size, U8)
            held[:] = POISON
        region = Region(
            name=name,
            base=window << WINDOW_BITS,
            bytes=size,
            data=held,
            writable=role != "input",
            state=state,
            once=role == "output",
        )
        self.regions[window] = region
        return region

    def read(self, m: Machine, addr: Array, width: int, line: int) -> Array:
        """Elements of `width` bytes at `addr` (int64); zero where there is no memory."""
        live = first_active(m, addr)
        region = self._region(live, width)
        if region is None:
            return self._read_apart(m, addr, width, line)
        offset = live - region.base
        if region.state is not None:
            gathered = region.state.view(UNSIGNED[width])[offset // width]
            report(m, "uninitialised", line, differs(gathered, WRITTEN), offset, region.name)
        return np.asarray(region.view(width).take(offset // width))

    def write(self, m: Machine, addr: Array, value: Array, width: int, line: int) -> None:
        """Store elements of `width` bytes."""
        m.stores += 1
        live = first_active(m, addr)
        region = self._region(live, width)
        if region is None:
            self._write_apart(m, addr, value, width, line)
            return
        if not region.writable:
            report(m, "write_to_input", line, np.ones((1, 1), bool), live, region.name)
            return
        at = (by_lane(m, addr) - region.base) // width
        if region.state is not None:
            self._note_write(m, region, at, width, line)
        region.view(width)[at] = by_lane(m, value)

    def _region(self, addr: Array, width: int) -> Region | None:
        """The one buffer that all lanes are in, rightly aligned; None: it takes a closer look."""
        low, high = int(addr.min()), int(addr.max())
        region = self.regions.get(low >> WINDOW_BITS)
        if region is None or high + width > region.base + region.bytes:
            return None
        if width > 1 and int(np.bitwise_or.reduce(addr, axis=None)) & (width - 1):
            return None
        return region

    def _note_write(self, m: Machine, region: Region, at: Array, width: int, line: int) -> None:
        assert region.state is not None
        states = region.state.view(UNSIGNED[width])
        if region.once:
            twice = differs(states[at], EMPTY)
            lanes = np.arange(at.size, dtype=np.int32)
            if width not in region.marks:
                region.marks[width] = np.zeros(region.data.size // width, np.int32)
            region.marks[width][at] = lanes
            twice |= region.marks[width][at] != lanes
            if twice.any():
                full = np.zeros(m.lanes, bool)
                mask = np.ones((1, 1), bool) if m.mask is None else m.mask
                full[np.broadcast_to(mask, m.lanes)] = twice
                report(m, "double_write", line, full, None, region.name)
        states[at] = pattern(WRITTEN, width)[0]

    # Lanes in several buffers, or outside of them: one by one, since it is rare.

    def _good(self, m: Machine, addr: Array, width: int, line: int) -> tuple[Array, Array]:
        """Windows of the lanes, and which of them may go ahead; the others are reported."""
        window = addr >> np.int64(WINDOW_BITS)
        inside = np.zeros(addr.shape, bool)
        for number, region in self.regions.items():
            high = region.base + region.bytes - width
            inside |= (window == number) & (addr <= high)
        report(m, "out_of_bounds", line, ~inside, addr, "", self.describe)
        odd = inside & ((addr & np.int64(width - 1)) != 0)
        report(m, "misaligned", line, odd, addr, "", self.describe)
        return window, inside & ~odd

    def _read_apart(self, m: Machine, addr: Array, width: int, line: int) -> Array:
        window, good = self._good(m, addr, width, line)
        out = np.zeros(addr.shape, UNSIGNED[width])
        kept = m.mask
        for number, region in self.regions.items():
            here = good & (window == number)
            m.mask = here if kept is None else here & kept
            if m.mask.any():
                inner = np.where(here, addr, region.base)
                out = np.where(here, self.read(m, inner, width, line), out)
        m.mask = kept
        return out

    def _write_apart(self, m: Machine, addr: Array, value: Array, width: int, line: int) -> None:
        window, good = self._good(m, addr, width, line)
        kept = m.mask
        for number in self.regions:
            here = good & (window == number)
            m.mask = here if kept is None else here & kept
            if m.mask.any():
                self.write(m, addr, value, width, line)
        m.mask = kept

    def describe(self, address: int) -> str:
        """An address in words: the buffer it is in, or nearest behind."""
        region = self.regions.get(address >> WINDOW_BITS)
        if region is None:
            near = self.regions.get((address >> WINDOW_BITS) + 1)
            return f"{near.name}{address - near.base:+d}" if near else f"address {address:#x}"
        return f"{region.name}+{address - region.base} of {region.bytes} bytes"
