"""Facts of each SM, the one table of them, and how many blocks of a kernel fit on one."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPILL = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")

WARP = 32
MAX_REGISTERS_PER_THREAD = 255
"""On every SM (CUDA Programming Guide, technical specifications per compute capability)."""
STATIC_SHARED_BYTES = 48 * 1024
"""The most shared memory that a kernel may declare statically, on every SM (same table)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmFacts:
    """What one SM has, and what its instructions are.

    Threads, blocks, shared memory and registers: CUDA Programming Guide 13, "Compute Capabilities",
    tables "Technical Specifications" and "Shared Memory Capacity"; 1 KiB of shared memory is
    reserved for each block from compute capability 8.0 on (Ampere Tuning Guide, "Unified Shared
    Memory/L1/Texture Cache"). PTX versions: PTX ISA, "Release Notes": the first with the target.
    """

    threads: int
    """Resident threads."""
    blocks: int
    """Resident blocks."""
    shared_bytes: int
    reserved_bytes: int = 1024
    """Shared memory that the system takes for each block."""
    registers: int = 65536
    """32-bit registers."""
    ptx: tuple[int, int]
    """The first PTX version with this target."""
    is_async: bool = True
    """Whether it has asynchronous copies to shared memory, and BF16: both came with sm_80."""


_KIB = 1024

SMS: dict[int, SmFacts] = {
    75: SmFacts(
        threads=1024, blocks=16, shared_bytes=64 * _KIB, reserved_bytes=0, ptx=(6, 3),
        is_async=False,
    ),
    80: SmFacts(threads=2048, blocks=32, shared_bytes=164 * _KIB, ptx=(7, 0)),
    86: SmFacts(threads=1536, blocks=16, shared_bytes=100 * _KIB, ptx=(7, 1)),
    87: SmFacts(threads=1536, blocks=16, shared_bytes=164 * _KIB, ptx=(7, 4)),
    89: SmFacts(threads=1536, blocks=24, shared_bytes=100 * _KIB, ptx=(7, 8)),
    90: SmFacts(threads=2048, blocks=32, shared_bytes=228 * _KIB, ptx=(7, 8)),
    100: SmFacts(threads=2048, blocks=32, shared_bytes=228 * _KIB, ptx=(8, 6)),
    103: SmFacts(threads=2048, blocks=32, shared_bytes=228 * _KIB, ptx=(8, 8)),
    110: SmFacts(threads=1536, blocks=24, shared_bytes=228 * _KIB, ptx=(9, 0)),
    120: SmFacts(threads=1536, blocks=24, shared_bytes=100 * _KIB, ptx=(8, 7)),
    121: SmFacts(threads=1536, blocks=24, shared_bytes=100 * _KIB, ptx=(8, 8)),
}  # fmt: skip
"""SM number -> facts; kernels are made for these and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Resources of one kernel, from the assembler's own report."""

    registers: int
    """For each thread."""
    shared_bytes: int
    """Static, for each block."""
    stack_bytes: int
    spill_bytes: int
    """Stores and loads of spilt registers in the text of the kernel, in bytes, added."""


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


def blocks_per_sm(usage: Usage, threads: int, sm: SmFacts) -> int:
    """Blocks of a kernel that one SM holds at a time.

    Registers are given to a warp in units of 256 (CUDA occupancy calculator, "register allocation
    unit size"), shared memory to a block in units of 128 bytes.
    """
    warps = -(-threads // WARP)
    registers = warps * -(-usage.registers * WARP // 256) * 256
    shared = -(-(usage.shared_bytes + sm.reserved_bytes) // 128) * 128
    return min(
        sm.threads // threads,
        sm.blocks,
        sm.registers // registers if registers else sm.blocks,
        sm.shared_bytes // shared if shared else sm.blocks,
    )
