"""A run's counters, put together from those of its batches."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trtplug.emulator.counters import AccessCount, Counters
from trtplug.emulator.ptx import Instruction

if TYPE_CHECKING:
    from trtplug.emulator.decode import Program


def totals(
    program: Program,
    blocks: int,
    warps_run: Counter[int],
    accesses: dict[tuple[str, int], list[int]],
) -> Counters:
    """Counters of a whole run, from how often each block of code ran and what was accessed."""
    opcodes: Counter[str] = Counter()
    multiply_adds = 0
    for code in program.codes:
        times = warps_run[code.index]
        multiply_adds += times * code.multiply_adds
        for opcode, count in code.opcodes.items():
            opcodes[opcode] += count * times
    by_line = {i.line: i.opcode for i in program.kernel.body if isinstance(i, Instruction)}
    counts = {
        space: tuple(
            AccessCount(line=line, opcode=by_line[line], requests=r, units=u, ideal=i)
            for (where, line), (r, u, i) in sorted(accesses.items())
            if where == space
        )
        for space in ("shared", "global")
    }
    return Counters(
        blocks=blocks,
        warp_instructions=sum(opcodes.values()),
        by_opcode={k: v for k, v in opcodes.most_common() if v},
        multiply_adds=multiply_adds,
        shared=counts["shared"],
        global_=counts["global"],
    )
