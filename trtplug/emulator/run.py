"""Launch a kernel: buffers and numbers in, findings and counters out; outputs change in place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trtplug.emulator.checks import Checks, Finding, Findings
from trtplug.emulator.counters import AccessCount, Counters, Tally
from trtplug.emulator.decode import Program, decode
from trtplug.emulator.machine import Copies, Machine
from trtplug.emulator.memory import EMPTY, GlobalMemory, Region, RowMemory
from trtplug.emulator.ptx import Instruction
from trtplug.emulator.races import RaceLog
from trtplug.emulator.schedule import Scheduler
from trtplug.emulator.values import U32, U64, WARP, Array, constant
from trtplug.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.emulator.ptx import Kernel, Module, Variable


Size3 = tuple[int, int, int]


def special_register(name: str, grid: Size3, block: Size3, lane: Array, ids: Array) -> Array:
    """What a special register such as `%tid.x` holds.

    `lane` [1, threads] numbers the threads of a block, `ids` [blocks] the blocks of the grid.
    """
    if name == "%laneid":
        return (lane % WARP).astype(U32)
    if name == "%warpid":
        return (lane // WARP).astype(U32)
    if name.startswith("%lanemask"):
        return _lane_mask(name[-2:], lane % WARP)
    register, axis = name[1:].split(".")
    i = "xyz".index(axis)
    if register == "ntid":
        return constant(block[i], 4)
    if register == "nctaid":
        return constant(grid[i], 4)
    sizes, number = (block, lane) if register == "tid" else (grid, ids[:, None])
    before = int(np.prod(sizes[:i], dtype=np.int64))
    value = number // before % sizes[i]
    return constant(0, 4) if sizes[i] == 1 else value.astype(U32)


def _lane_mask(which: str, lane: Array) -> Array:
    one = np.left_shift(U64.type(1), lane.astype(U64))
    below = one - U64.type(1)
    masks = {"eq": one, "lt": below, "le": below | one, "gt": ~(below | one), "ge": ~below}
    return np.asarray(masks[which].astype(U32))


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


LANES = 8192
"""Threads in lockstep: enough that NumPy's work outweighs Python's, few enough for the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Global memory of a launch."""

    name: str
    data: Array
    """C-contiguous; an output is filled in place."""
    role: Literal["input", "output", "both"] = "input"
    """An output is to be written once, everywhere, and starts as NaN."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a launch."""

    findings: tuple[Finding, ...]
    counters: Counters


@dataclass(frozen=True, slots=True, kw_only=True)
class _Launch:
    """A launch, checked and laid out."""

    program: Program
    grid: Size3
    block: Size3
    shared_bytes: int
    local_bytes: int
    arguments: tuple[int, ...]
    memory: GlobalMemory
    checks: Checks | None

    @property
    def threads(self) -> int:
        """Of a block, in whole warps."""
        x, y, z = self.block
        return -(-(x * y * z) // WARP) * WARP


def launch(
    module: Module,
    kernel: str,
    grid: Size3,
    block: Size3,
    shared_bytes: int,
    args: Sequence[Buffer | int],
    checks: Checks | None,
    *,
    blocks: Sequence[int] | None = None,
) -> Run:
    """Run a kernel and see what it does.

    Args:
        module: parsed PTX.
        kernel: name of the entry.
        grid: blocks along x, y, z.
        block: threads of a block along x, y, z.
        shared_bytes: dynamic shared memory of a block.
        args: one for each parameter, in order; a number 0 for a pointer is the null pointer.
        checks: what to check beside bounds and alignment; None: numbers only.
        blocks: numbers of the blocks to run (x fastest), where not all; then nothing is said of
            unwritten outputs.

    Raises:
        LaunchError: arguments, sizes or blocks that do not fit.
        PtxError: an instruction the emulator does not know.
    """
    entry = module.kernels.get(kernel)
    if entry is None:
        raise LaunchError(kernel, f"the module has {', '.join(module.kernels) or 'no kernel'}")
    _check_sizes(kernel, grid, block)
    memory = GlobalMemory()
    regions = _regions(entry, args, memory, checks)
    symbols, shared, local = _place(module, entry, shared_bytes, memory)
    state = _Launch(
        program=decode(entry, symbols),
        grid=grid,
        block=block,
        shared_bytes=shared,
        local_bytes=local,
        arguments=tuple(
            regions[i].base if isinstance(a, Buffer) else a for i, a in enumerate(args)
        ),
        memory=memory,
        checks=checks,
    )
    chosen = _chosen(kernel, grid, blocks)
    found = Findings()
    counters = _run_all(state, chosen, found)
    for i, arg in enumerate(args):
        if isinstance(arg, Buffer) and arg.role != "input":
            _take_back(arg, regions[i], found, complete=blocks is None)
    return Run(findings=found.all(), counters=counters)


def _check_sizes(kernel: str, grid: Size3, block: Size3) -> None:
    threads = block[0] * block[1] * block[2]
    if min(block) < 1 or threads > 1024:
        raise LaunchError(kernel, f"a block of {block} threads; it takes 1 to 1024")
    if min(grid) < 1 or grid[0] >= 1 << 31 or max(grid[1:]) > 65535:
        raise LaunchError(kernel, f"a grid of {grid} blocks")


def _chosen(kernel: str, grid: Size3, blocks: Sequence[int] | None) -> Array:
    total = grid[0] * grid[1] * grid[2]
    if blocks is None:
        return np.arange(total, dtype=np.int64)
    wanted = sorted(set(blocks))
    if not wanted or wanted[0] < 0 or wanted[-1] >= total:
        raise LaunchError(kernel, f"blocks {wanted[:1]} to {wanted[-1:]} of a grid of {total}")
    return np.array(wanted, dtype=np.int64)


def _regions(
    entry: Kernel, args: Sequence[Buffer | int], memory: GlobalMemory, checks: Checks | None
) -> dict[int, Region]:
    if len(args) != len(entry.parameters):
        raise LaunchError(entry.name, f"{len(args)} arguments for {len(entry.parameters)}")
    out: dict[int, Region] = {}
    for i, (arg, parameter) in enumerate(zip(args, entry.parameters, strict=True)):
        if not isinstance(arg, Buffer):
            continue
        if parameter.size != 8 or not arg.data.flags.c_contiguous:
            raise LaunchError(entry.name, f"{arg.name} is no contiguous array, or no pointer")
        content = arg.data.reshape(-1).view(np.uint8)
        checked = checks is not None and checks.memory
        out[i] = memory.add(arg.name, content, role=arg.role, checked=checked)
    return out


def _place(
    module: Module, entry: Kernel, dynamic: int, memory: GlobalMemory
) -> tuple[dict[str, int], int, int]:
    """Addresses of all variables, and the bytes of shared and local memory."""
    symbols: dict[str, int] = {}
    ends = {"shared": 0, "local": 0}
    late: list[Variable] = []
    for v in (*module.variables, *entry.variables):
        if v.size is None and v.space == "shared":
            late.append(v)
        elif v.space in ends:
            start = -(-ends[v.space] // v.align) * v.align
            symbols[v.name], ends[v.space] = start, start + (v.size or 0)
        else:
            data = v.initial.ljust(v.size or 0, b"\0")
            role = "input" if v.space == "const" else "both"
            symbols[v.name] = memory.add(v.name, data, role=role, checked=False).base
    for v in late:
        symbols[v.name] = -(-ends["shared"] // max(v.align, 16)) * max(v.align, 16)
    dynamic_start = max((symbols[v.name] for v in late), default=ends["shared"])
    return symbols, dynamic_start + dynamic, ends["local"]


def _run_all(state: _Launch, chosen: Array, found: Findings) -> Counters:
    per_batch = max(1, LANES // state.threads)
    warps_run: Counter[int] = Counter()
    accesses: dict[tuple[str, int], list[int]] = {}
    for start in range(0, len(chosen), per_batch):
        ids = chosen[start : start + per_batch]
        found.block_ids = ids
        machine = _machine(state, ids, found, accesses)
        scheduler = Scheduler(machine, state.program, state.checks or Checks())
        with np.errstate(all="ignore"):
            scheduler.run()
        if machine.races is not None:
            machine.races.barrier(None)
        warps_run.update(dict(enumerate(scheduler.warps_run)))
    return totals(state.program, len(chosen), warps_run, accesses)


def _machine(
    state: _Launch, ids: Array, found: Findings, accesses: dict[tuple[str, int], list[int]]
) -> Machine:
    threads = state.threads
    # No checks: numbers only.
    checks = state.checks or Checks(races=False, memory=False, access=False)
    memory = checks.memory
    local_rows = len(ids) * threads if state.local_bytes else 1
    machine = Machine(
        blocks=len(ids),
        threads=threads,
        registers=list(state.program.layout.initial),
        global_memory=state.memory,
        shared=RowMemory("shared", len(ids), state.shared_bytes, checked=memory),
        local=RowMemory("local", local_rows, state.local_bytes, checked=memory),
        findings=found,
        tally=Tally(threads, len(ids), accesses) if checks.access else None,
        races=RaceLog(found, len(ids), threads, state.shared_bytes) if checks.races else None,
        copies=Copies(),
        real_threads=state.block[0] * state.block[1] * state.block[2],
    )
    _fill(state, machine, ids)
    return machine


def _fill(state: _Launch, machine: Machine, ids: Array) -> None:
    """Special registers and parameters."""
    lay = state.program.layout
    for name, number in lay.specials.items():
        machine.registers[number] = special_register(
            name, state.grid, state.block, machine.lane, ids
        )
    for parameter, value in zip(state.program.kernel.parameters, state.arguments, strict=True):
        if parameter.name in lay.numbers:
            number = lay.numbers[parameter.name]
            machine.registers[number] = constant(value, parameter.size)


def _take_back(arg: Buffer, region: Region, found: Findings, *, complete: bool) -> None:
    """Copy an output back, and see that all of it was written."""
    arg.data.reshape(-1).view(np.uint8)[:] = region.data[: region.bytes]
    if region.state is None or not complete:
        return
    empty = region.state[: region.bytes] == EMPTY
    if empty.any():
        first = int(np.flatnonzero(empty)[0])
        item = arg.data.itemsize
        text = f"element {first // item} of {arg.data.size} was never written"
        found.add(Finding("unwritten", 0, arg.name, text, max(int(empty.sum()) // item, 1)))
