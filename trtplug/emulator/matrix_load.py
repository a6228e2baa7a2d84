"""`ldmatrix`: matrices of 8 rows of 16 bytes from shared memory to the fragments of a warp."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.emulator.access import fetch_shared, place
from trtplug.emulator.layout import Layout, unsupported
from trtplug.emulator.values import U32, WARP, Array, spread
from trtplug.emulator.warp import whole

if TYPE_CHECKING:
    from trtplug.emulator.machine import Machine, Step
    from trtplug.emulator.ptx import Instruction

_ROW_BYTES = 16
_MATRIX_ROWS = 8


def load_matrix(ins: Instruction, lay: Layout) -> Step:
    """`ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].shared.b16`."""
    parts = [p for p in ins.parts if p not in ("trans", "shared::cta")]
    if parts[:3] != ["sync", "aligned", "m8n8"] or parts[-1] != "b16" or len(parts) < 5:
        raise unsupported(ins)
    count = {"x1": 1, "x2": 2, "x4": 4}.get(parts[3], 0)
    results = lay.results(ins, ins.operands[0])
    if len(results) != count or not {*parts[4:-1]} <= {"shared"}:
        raise unsupported(ins)
    where = place(ins, lay, ins.operands[1], "shared")
    turned = "trans" in ins.parts
    everyone = lay.constant(-1, 4)

    def step(m: Machine) -> None:
        whole(m, m.registers[everyone], ins.line, "ldmatrix")
        running, given = m.mask, where.address(m)
        if count < 4:
            first = (m.lane & (WARP - 1)) < count * _MATRIX_ROWS
            m.mask = first if running is None else first & running
        rows = fetch_shared(m, given, _ROW_BYTES, ins.line)
        m.mask = running
        for d, value in zip(results, _matrices(rows, m.threads, count, turned), strict=True):
            m.registers[d] = value

    return step


def _matrices(rows: Array, threads: int, count: int, turned: bool) -> list[Array]:
    """Rows of 16 bytes, [blocks, threads], as one register a matrix."""
    full = np.ascontiguousarray(spread(rows, (len(rows), threads)))
    out: list[Array] = []
    if not turned:
        words = full.view(U32).reshape(len(rows), -1, WARP // _MATRIX_ROWS, WARP)
        out = [words[:, :, j].reshape(len(rows), threads) for j in range(count)]
    else:
        halves = full.view(np.uint16).reshape(len(rows), -1, WARP // _MATRIX_ROWS, 8, 8)
        for j in range(count):
            turned_matrix = np.ascontiguousarray(halves[:, :, j].swapaxes(-1, -2))
            out.append(turned_matrix.view(U32).reshape(len(rows), threads))
    return out
