"""What global, shared and local memory have in common: windows, states of bytes, reports.

Beside each byte that a kernel may write there is a state byte: nothing wrote it, written, or an
asynchronous copy is on its way to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.values import C16, U8, U64, UNSIGNED, Array, spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.emulator.checks import Kind
    from trtplug.emulator.machine import Machine

WINDOW_BITS = 40
SHARED_WINDOW = 1 << WINDOW_BITS
LOCAL_WINDOW = 2 << WINDOW_BITS
FIRST_BUFFER = 16
"""Window of the first buffer; those below it are for shared and local memory."""

EMPTY, WRITTEN, COMING = 0, 1, 2
POISON = 0xFF
"""All bytes of this value make a NaN of every floating-point type."""

PAD = 32


def first_active(m: Machine, x: Array) -> Array:
    """`x` with lanes that do not run replaced by one that does: safe to read, silent in checks."""
    if m.mask is None:
        return x
    shape = (max(len(x), len(m.mask)), max(x.shape[1], m.mask.shape[1]))
    lane = int(spread(m.mask, shape).argmax())
    return np.where(m.mask, x, spread(x, shape)[divmod(lane, shape[1])])


def by_lane(m: Machine, x: Array) -> Array:
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
        pairs = np.ascontiguousarray(gathered).view(U64).reshape(*gathered.shape, 2)
        return np.asarray((pairs != pattern(state, 8)[0]).any(axis=-1))
    return np.asarray(gathered != pattern(state, gathered.dtype.itemsize)[0])


def report(
    m: Machine,
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
