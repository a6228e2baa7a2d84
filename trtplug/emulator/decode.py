"""A kernel's blocks as lists of steps, ready to run.

Steps set registers for all lanes, running or not; `run` puts the old values of lanes that stayed
out back, and only where somebody will read them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from trtplug.emulator import compare, floating, integer, load_store, moves, tensor_core, warp
from trtplug.emulator.blocks import Block, split_blocks
from trtplug.emulator.layout import Builder, Layout, unsupported
from trtplug.emulator.machine import Machine, Step
from trtplug.emulator.ptx import Immediate, Instruction, Kernel, Name
from trtplug.errors import PtxError

_BUILDERS: dict[str, Builder] = {
    **integer.BUILDERS,
    **moves.BUILDERS,
    **compare.BUILDERS,
    **warp.BUILDERS,
    **load_store.BUILDERS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One block, decoded."""

    index: int
    steps: tuple[tuple[Step, tuple[int, ...]], ...]
    """Each with the registers that nobody reads after it."""
    end: Instruction | None
    predicate: int | None
    """Register that decides the jump at the end."""
    negated: bool
    targets: tuple[int, ...]
    keep: tuple[int, ...]
    """Registers set here that are read elsewhere: lanes that stay out keep their old values."""
    dead: tuple[int, ...]
    """Registers nobody reads behind this block, once no lane is left before it."""
    opcodes: dict[str, int]
    """Instructions by opcode as written, its end among them."""
    multiply_adds: int
    """Of one warp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A kernel, decoded."""

    kernel: Kernel
    codes: tuple[Code, ...]
    layout: Layout


def decode(kernel: Kernel, symbols: dict[str, int]) -> Program:
    """Steps for every instruction of a kernel.

    Raises:
        PtxError: an instruction the emulator does not know.
    """
    parameters = {p.name: 8 * p.size for p in kernel.parameters}
    layout = Layout(kernel.registers | parameters, symbols)
    blocks = split_blocks(kernel)
    products = (ins for block in blocks for ins in block.body if ins.op == "mma")
    sums = frozenset(n for ins in products for n in ins.writes)
    codes = tuple(_code(block, layout, sums) for block in blocks)
    return Program(kernel=kernel, codes=codes, layout=layout)


def _code(block: Block, lay: Layout, sums: frozenset[str]) -> Code:
    opcodes = Counter(ins.opcode for ins in block.body)
    if block.end is not None:
        opcodes[block.end.opcode] += 1
    ordered = tensor_core.grouped(block.body)
    steps = _with_dead(block, ordered, lay, sums)
    end, predicate = block.end, None
    if end is not None:
        _check_end(end)
        if end.predicate is not None:
            predicate = lay.operand(end, Name(text=end.predicate.text), 1)
    keep = block.defines & block.live_out
    here = {n for ins in block.body for n in ins.reads} | block.live_in | block.defines
    return Code(
        index=block.index,
        steps=tuple(steps),
        end=end,
        predicate=predicate,
        negated=end is not None and end.predicate is not None and end.predicate.negated,
        targets=block.targets,
        keep=_numbers(keep, lay),
        dead=_numbers(here - block.live_out - _ends(end), lay),
        opcodes=dict(opcodes),
        multiply_adds=sum(_multiply_adds(ins) for ins in block.body),
    )


def _ends(end: Instruction | None) -> set[str]:
    return set() if end is None else set(end.reads)


def _check_end(end: Instruction) -> None:
    """Barriers and jumps that are known."""
    if end.op in ("bra", "ret", "exit") and set(end.parts) <= {"uni"}:
        return
    numbers = all(isinstance(o, Immediate) for o in end.operands)
    if end.op in ("bar", "barrier") and numbers and end.predicate is None:
        plain = tuple(p for p in end.parts if p not in ("cta", "aligned"))
        if plain == ("sync",) and 1 <= len(end.operands) <= 2:
            return
    raise unsupported(end)


def _numbers(wanted: set[str] | frozenset[str], lay: Layout) -> tuple[int, ...]:
    """Numbers of the registers among names."""
    return tuple(lay.numbers[n] for n in sorted(wanted) if n in lay.numbers)


def _multiply_adds(ins: Instruction) -> int:
    if ins.op == "mma":
        return 16 * 8 * tensor_core.shape_of(ins).k
    if ins.op == "fma":
        return 64 if any(p.endswith("x2") for p in ins.parts) else 32
    return 0


# Single instructions.


def _with_dead(
    block: Block, ordered: list[tuple[Instruction, ...]], lay: Layout, sums: frozenset[str]
) -> list[tuple[Step, tuple[int, ...]]]:
    """Steps, each with the registers of this block alone that it read last.

    `sums`: accumulators of tensor-core products, which others see only once they are settled.
    """
    inner = block.defines - block.live_in - block.live_out - _ends(block.end)
    seen: set[str] = set()
    steps: list[tuple[Step, tuple[int, ...]]] = []
    for group in reversed(ordered):
        touched = {n for ins in group for n in (*ins.reads, *ins.writes)}
        step = _step(group, lay)
        last = _numbers({n for n in touched & inner if n not in seen}, lay)
        seen |= touched
        steps.append((step, last))
        if group[0].op != "mma" and touched & sums:
            steps.append((tensor_core.settle, ()))
    return steps[::-1]


def _step(group: tuple[Instruction, ...], lay: Layout) -> Step:
    if group[0].op == "mma":
        if group[0].predicate is not None:
            raise unsupported(group[0], "predicate")
        products = tuple(tensor_core.product_of(ins, lay) for ins in group)
        shape = tensor_core.shape_of(group[0])
        return tensor_core.multiply(shape, products, lay.constant(-1, 4), group[0].line)
    ins = group[0]
    try:
        step = _builder(ins)(ins, lay)
    except (IndexError, KeyError, ValueError) as error:
        raise unsupported(ins) from error
    return step if ins.predicate is None else _predicated(ins, step, lay)


def _builder(ins: Instruction) -> Builder:
    # `add` and its like are opcodes of integers and of floating-point numbers.
    table = floating.BUILDERS if floating.is_float(ins) else {}
    builder = table.get(ins.op) or _BUILDERS.get(ins.op)
    if builder is None:
        raise unsupported(ins)
    return builder


def _predicated(ins: Instruction, step: Step, lay: Layout) -> Step:
    """`@%p`: other lanes keep what they have."""
    assert ins.predicate is not None
    try:
        p = lay.operand(ins, Name(text=ins.predicate.text), 1)
    except PtxError as error:
        raise PtxError(error.problem, ins.line) from None
    negated = ins.predicate.negated
    results = [lay.numbers[n] for n in ins.writes if n in lay.numbers]

    def guarded(m: Machine) -> None:
        r = m.registers
        on = ~r[p] if negated else r[p]
        if on.all():
            step(m)
            return
        outer = m.mask
        m.mask = on if outer is None else on & outer
        if m.mask.any():
            old = [r[d] for d in results]
            step(m)
            for d, before in zip(results, old, strict=True):
                r[d] = np.where(on, r[d], before.view(r[d].dtype))
        m.mask = outer

    return guarded
