"""Shared and local memory: a row a block, or a row a thread.

While all rows are in the same state, the state is kept once: most kernels write shared memory in
the same pattern in every block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.memory import (
    COMING,
    PAD,
    POISON,
    WRITTEN,
    by_lane,
    differs,
    first_active,
    pattern,
    report,
)
from trtplug.emulator.values import U8, UNSIGNED, Array, spread

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine


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

    def checked(self, m: Machine, addr: Array, width: int, line: int) -> tuple[Array, Array | None]:
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

    def read(self, m: Machine, addr: Array, width: int, line: int, rows: Array) -> Array:
        """Elements at `addr`, which `checked` gave; `rows`: each lane's row."""
        if self.state is not None:
            self._look(m, addr, width, line, rows)
        at = addr // width
        if at.shape[0] == 1 and rows.shape[1] == 1:
            return np.asarray(self.view(width).take(at[0], axis=1))
        view = self.view(width)
        return np.asarray(view.reshape(-1).take(at + rows * view.shape[1]))

    def write(
        self, m: Machine, addr: Array, value: Array, width: int, rows: Array, state: int = WRITTEN
    ) -> None:
        """Store elements at `addr`, which `checked` gave."""
        m.stores += 1
        at = addr // width
        self._put(m, self.view(width), at, value, rows)
        if self.state is not None:
            self._mark(m, at, width, rows, state)

    def mark(self, m: Machine, addr: Array, width: int, rows: Array, state: int) -> None:
        """Set the state of elements without writing them."""
        if self.state is not None:
            self._mark(m, addr // width, width, rows, state)

    def coming(self, addr: Array, width: int, rows: Array) -> Array:
        """Lanes whose element has a byte that a copy is on its way to."""
        assert self.state is not None
        return self._bytes_of(addr, width, rows, COMING)

    def _bytes_of(self, addr: Array, width: int, rows: Array, state: int) -> Array:
        gathered = self._states(addr // width, width, rows)
        flat = np.ascontiguousarray(gathered).view(U8).reshape(*gathered.shape, width)
        return np.asarray((flat == state).any(axis=-1))

    def _put(self, m: Machine, view: Array, at: Array, value: Array, rows: Array) -> None:
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

    def _look(self, m: Machine, addr: Array, width: int, line: int, rows: Array) -> None:
        bad = differs(self._states(addr // width, width, rows), WRITTEN)
        if not bad.any():
            return
        coming = self._bytes_of(addr, width, rows, COMING)
        report(m, "unfinished_copy", line, bad & coming, addr, f"{self.name} memory")
        report(m, "uninitialised", line, bad & ~coming, addr, f"{self.name} memory")

    def _mark(self, m: Machine, at: Array, width: int, rows: Array, state: int) -> None:
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
