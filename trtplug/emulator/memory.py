"""What global, shared and local memory have in common: windows, states of bytes, reports.

Beside each byte that a kernel may write there is a state byte: nothing wrote it, written, or an
asynchronous copy is on its way to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from trtplug.emulator.values import C16, U8, UNSIGNED, Array, split, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.emulator.checks import Findings, Kind


WINDOW_BITS = 40
SHARED_WINDOW = 1 << WINDOW_BITS
LOCAL_WINDOW = 2 << WINDOW_BITS
FIRST_BUFFER = 16
"""Window of the first buffer; those below it are for shared and local memory."""

EMPTY, WRITTEN, COMING = 0, 1, 2
POISON = 0xFF
"""All bytes of this value make a NaN of every floating-point type."""

PAD = 32


class Lanes(Protocol):
    """What memory asks of the `Machine` whose lanes use it."""

    threads: int
    mask: Array | None
    stores: int
    findings: Findings

    @property
    def lanes(self) -> tuple[int, int]:
        """Blocks and threads."""


def first_active(m: Lanes, x: Array) -> Array:
    """`x` with lanes that do not run replaced by one that does: safe to read, silent in checks."""
    if m.mask is None:
        return x
    shape = (max(len(x), len(m.mask)), max(x.shape[1], m.mask.shape[1]))
    lane = int(spread(m.mask, shape).argmax())
    return np.where(m.mask, x, spread(x, shape)[divmod(lane, shape[1])])


def by_lane(m: Lanes, x: Array) -> Array:
    """Values of the lanes that run, in one row."""
    full = spread(x, m.lanes)
    return full.ravel() if m.mask is None else full[spread(m.mask, m.lanes)]


_PATTERNS = {
    (state, width): np.full(width, state, U8).view(UNSIGNED[width])
    for state in (EMPTY, WRITTEN, COMING)
    for width in UNSIGNED
}


def pattern(state: int, width: int) -> Array:
    """`width` state bytes, as the integer (or 16 bytes) they are gathered by: one element."""
    return _PATTERNS[state, width]


def differs(gathered: Array, state: int) -> Array:
    """Whether the state bytes of each lane are not all `state`."""
    if gathered.dtype is C16:
        return np.asarray((split(gathered, 2) != pattern(state, 8)[0]).any(axis=-1))
    return np.asarray(gathered != pattern(state, gathered.dtype.itemsize)[0])


def report(
    m: Lanes,
    kind: Kind,
    line: int,
    bad: Array,
    addr: Array | None,
    place: str,
    describe: Callable[[int], str] | None = None,
) -> None:
    """Findings for the lanes of `bad` that run."""
    if not bad.any():
        return
    mask = np.ones((1, 1), bool) if m.mask is None else m.mask
    bad = np.broadcast_to(bad & mask, np.broadcast_shapes(bad.shape, mask.shape))
    if not bad.any():
        return

    def detail(row: int, column: int) -> str:
        if addr is None:
            return place
        value = int(np.broadcast_to(addr, np.broadcast_shapes(addr.shape, bad.shape))[row, column])
        return describe(value) if describe else f"{place}, byte {value}"

    m.findings.lanes(kind, line, bad, detail)


class RowMemory:
    """Shared memory (a row a block) or local memory (a row a thread)."""

    def __init__(self, name: str, rows: int, size: int, *, checked: bool) -> None:
        self.name = name
        self.bytes = size
        stride = -(-size // PAD) * PAD + PAD
        self.data = np.zeros((rows, stride), U8)
        self.state: Array | None = np.zeros((1, stride), U8) if checked else None
        """One row while all rows are in the same state."""
        if checked:
            self.data[:] = POISON
        self._views: dict[int, Array] = {}

    def view(self, width: int) -> Array:
        """The rows as elements of `width` bytes."""
        if width not in self._views:
            self._views[width] = self.data.view(UNSIGNED[width])
        return self._views[width]

    def checked(self, m: Lanes, addr: Array, width: int, line: int) -> tuple[Array, Array | None]:
        """Addresses (int64) that are safe in every lane, and the lanes that may go ahead.

        None: all that run. Lanes outside the memory, or misaligned, are reported.
        """
        live = first_active(m, addr)
        low, high = int(live.min()), int(live.max())
        aligned = width == 1 or not int(np.bitwise_or.reduce(live, axis=None)) & (width - 1)
        if low >= 0 and high + width <= self.bytes and aligned:
            return live, None
        outside = (live < 0) | (live + width > self.bytes)
        text = f"{self.name} memory of {self.bytes} bytes"
        report(m, "out_of_bounds", line, outside, live, text)
        odd = ~outside & ((live & np.int64(width - 1)) != 0)
        report(m, "misaligned", line, odd, live, text)
        good = ~outside & ~odd
        return np.where(good, live, 0), good if m.mask is None else good & m.mask

    def read(self, m: Lanes, addr: Array, width: int, line: int, rows: Array) -> Array:
        """Elements at `addr`, which `checked` gave; `rows`: each lane's row."""
        if self.state is not None:
            self._look(m, addr, width, line, rows)
        at = addr // width
        if at.shape[0] == 1 and rows.shape[1] == 1:
            return np.asarray(self.view(width).take(at[0], axis=1))
        view = self.view(width)
        return np.asarray(view.reshape(-1).take(at + rows * view.shape[1]))

    def write(
        self, m: Lanes, addr: Array, value: Array, width: int, rows: Array, state: int = WRITTEN
    ) -> None:
        """Store elements at `addr`, which `checked` gave."""
        m.stores += 1
        at = addr // width
        self._put(m, self.view(width), at, value, rows)
        if self.state is not None:
            self._mark(m, at, width, rows, state)

    def coming(self, addr: Array, width: int, rows: Array) -> Array:
        """Lanes whose element has a byte that a copy is on its way to."""
        states = self._states(addr // width, width, rows)
        return np.asarray((split(states, width) == COMING).any(axis=-1))

    def _put(self, m: Lanes, view: Array, at: Array, value: Array, rows: Array) -> None:
        if rows.shape[1] == 1 and at.shape[0] == 1 and at.shape[1] == m.threads:
            if m.mask is None:
                view[:, at[0]] = value
                return
            if m.mask.shape[0] == 1:
                on = np.flatnonzero(spread(m.mask, (1, m.threads))[0])
                columns = value if value.shape[1] == 1 else value[:, on]
                view[:, at[0, on]] = columns
                return
        flat = by_lane(m, at + rows * view.shape[1])
        view.reshape(-1)[flat] = by_lane(m, value)

    def _states(self, at: Array, width: int, rows: Array) -> Array:
        assert self.state is not None
        states = self.state.view(UNSIGNED[width])
        if states.shape[0] == 1:
            return np.asarray(states[0][at])
        if at.shape[0] == 1 and rows.shape[1] == 1:
            return np.asarray(states.take(at[0], axis=1))
        return np.asarray(states.reshape(-1)[at + rows * states.shape[1]])

    def _look(self, m: Lanes, addr: Array, width: int, line: int, rows: Array) -> None:
        bad = differs(self._states(addr // width, width, rows), WRITTEN)
        if not bad.any():
            return
        coming = self.coming(addr, width, rows)
        report(m, "unfinished_copy", line, bad & coming, addr, f"{self.name} memory")
        report(m, "uninitialised", line, bad & ~coming, addr, f"{self.name} memory")

    def _mark(self, m: Lanes, at: Array, width: int, rows: Array, state: int) -> None:
        assert self.state is not None
        alike = rows.shape[1] == 1 and at.shape[0] == 1 and (m.mask is None or len(m.mask) == 1)
        value = pattern(state, width)[0]
        if self.state.shape[0] == 1 and self.data.shape[0] > 1:
            if alike:
                mask = slice(None) if m.mask is None else spread(m.mask, (1, m.threads))[0]
                lanes = at[0][mask] if at.shape[1] == m.threads else at[0]
                self.state.view(UNSIGNED[width])[0][lanes] = value
                return
            self.state = np.repeat(self.state, self.data.shape[0], axis=0)
        self._put(m, self.state.view(UNSIGNED[width]), at, pattern(state, width)[None], rows)


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

    def read(self, m: Lanes, addr: Array, width: int, line: int) -> Array:
        """Elements of `width` bytes at `addr` (int64); zero where there is no memory."""
        live = first_active(m, addr)
        region = self._region(live, width)
        if region is None:
            out = np.zeros(live.shape, UNSIGNED[width])
            for here in self._by_region(m, addr, width, line):
                out = np.where(here, self.read(m, addr, width, line), out)
            return out
        offset = live - region.base
        if region.state is not None:
            gathered = region.state.view(UNSIGNED[width])[offset // width]
            report(m, "uninitialised", line, differs(gathered, WRITTEN), offset, region.name)
        return np.asarray(region.view(width).take(offset // width))

    def write(self, m: Lanes, addr: Array, value: Array, width: int, line: int) -> None:
        """Store elements of `width` bytes."""
        m.stores += 1
        live = first_active(m, addr)
        region = self._region(live, width)
        if region is None:
            for _ in self._by_region(m, addr, width, line):
                self.write(m, addr, value, width, line)
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

    def _note_write(self, m: Lanes, region: Region, at: Array, width: int, line: int) -> None:
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

    def _good(self, m: Lanes, addr: Array, width: int, line: int) -> tuple[Array, Array]:
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

    def _by_region(self, m: Lanes, addr: Array, width: int, line: int) -> Iterator[Array]:
        """Lanes of one buffer after the other, with the mask set to them meanwhile."""
        window, good = self._good(m, addr, width, line)
        kept = m.mask
        for number in self.regions:
            here = good & (window == number)
            m.mask = here if kept is None else here & kept
            if m.mask.any():
                yield here
        m.mask = kept

    def describe(self, address: int) -> str:
        """An address in words: the buffer it is in, or nearest behind."""
        region = self.regions.get(address >> WINDOW_BITS)
        if region is None:
            near = self.regions.get((address >> WINDOW_BITS) + 1)
            return f"{near.name}{address - near.base:+d}" if near else f"address {address:#x}"
        return f"{region.name}+{address - region.base} of {region.bytes} bytes"
