"""What a kernel takes of an SM, and how many of its blocks fit: from the assembler's own report."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")

WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources of one kernel."""

    registers: int
    """For each thread."""
    shared_bytes: int
    """Static, for each block."""
    stack_bytes: int
    spill_bytes: int
    """Stores and loads of spilt registers in the text of the kernel, in bytes, added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmLimits:
    """What one SM has to share among blocks.

    CUDA Programming Guide, "Compute Capabilities", table of technical specifications.
    """

    threads: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int
    """Shared memory that the system takes for each block."""
    registers: int = 65536


LIMITS: dict[int, SmLimits] = {
    75: SmLimits(threads=1024, blocks=16, shared_bytes=64 * 1024, reserved_bytes=0),
    80: SmLimits(threads=2048, blocks=32, shared_bytes=164 * 1024, reserved_bytes=1024),
    86: SmLimits(threads=1536, blocks=16, shared_bytes=100 * 1024, reserved_bytes=1024),
    87: SmLimits(threads=1536, blocks=16, shared_bytes=164 * 1024, reserved_bytes=1024),
    89: SmLimits(threads=1536, blocks=24, shared_bytes=100 * 1024, reserved_bytes=1024),
    90: SmLimits(threads=2048, blocks=32, shared_bytes=228 * 1024, reserved_bytes=1024),
    100: SmLimits(threads=2048, blocks=32, shared_bytes=228 * 1024, reserved_bytes=1024),
    120: SmLimits(threads=1536, blocks=24, shared_bytes=100 * 1024, reserved_bytes=1024),
    121: SmLimits(threads=1536, blocks=24, shared_bytes=100 * 1024, reserved_bytes=1024),
}
"""SM number -> limits."""


def read_usage(log: str) -> Usage | None:
    """Usage from a log of `ptxas -v` with one kernel in it; None where it does not say."""
    spill, registers = _SPILL.search(log), _REGISTERS.search(log)
    if spill is None or registers is None:
        return None
    shared = _SHARED.search(log)
    return Usage(
        registers=int(registers[1]),
        shared_bytes=int(shared[1]) if shared else 0,
        stack_bytes=int(spill[1]),
        spill_bytes=int(spill[2]) + int(spill[3]),
    )


def blocks_per_sm(usage: Usage, threads: int, limits: SmLimits) -> int:
    """Blocks of a kernel that one SM holds at a time.

    Registers are given to a warp in units of 256 (CUDA occupancy calculator, "register allocation
    unit size"), shared memory to a block in units of 128 bytes.
    """
    warps = -(-threads // WARP)
    registers = warps * -(-usage.registers * WARP // 256) * 256
    shared = -(-(usage.shared_bytes + limits.reserved_bytes) // 128) * 128
    return min(
        limits.threads // threads,
        limits.blocks,
        limits.registers // registers if registers else limits.blocks,
        limits.shared_bytes // shared if shared else limits.blocks,
    )
