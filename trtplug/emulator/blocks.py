"""A kernel's body as basic blocks, with what is live at their ends.

A block ends at a jump, at a label and at a barrier; control falls into the next one. Registers are
numbered; constants and special registers take numbers too, so that an operand is always a number.
"""

from __future__ import annotations

from dataclasses import dataclass

from trtplug.emulator.ptx import Instruction, Kernel, Label, Name
from trtplug.errors import PtxError

ENDS = {"bra", "ret", "exit", "bar", "barrier", "trap"}
"""Opcodes that end a block. `bar.warp.sync` is none: see `ends_block`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Straight-line code."""

    index: int
    body: tuple[Instruction, ...]
    end: Instruction | None
    """The jump, return or barrier at its end; None: it falls through."""
    targets: tuple[int, ...]
    """Block jumped to, where `end` jumps."""
    defines: frozenset[str]
    live_in: frozenset[str]
    live_out: frozenset[str]


def ends_block(ins: Instruction) -> bool:
    """Whether control may leave, or wait, behind this instruction."""
    return ins.op in ENDS and ins.parts[:1] != ("warp",)


def split_blocks(kernel: Kernel) -> tuple[Block, ...]:
    """The blocks of a kernel in the order of its text, which is the order they are run by.

    Raises:
        PtxError: a jump to a label that is not there.
    """
    bodies, labels = _cut(kernel)
    ends = [body[-1] if body and ends_block(body[-1]) else None for body in bodies]
    targets = [_targets(end, labels) for end in ends]
    effects = [_effects(body) for body in bodies]
    live_in, live_out = _liveness(effects, ends, targets)
    return tuple(
        Block(
            index=i,
            body=tuple(body if ends[i] is None else body[:-1]),
            end=ends[i],
            targets=targets[i],
            defines=frozenset(effects[i][1] | effects[i][2]),
            live_in=frozenset(live_in[i]),
            live_out=frozenset(live_out[i]),
        )
        for i, body in enumerate(bodies)
    )


def _cut(kernel: Kernel) -> tuple[list[list[Instruction]], dict[str, int]]:
    bodies: list[list[Instruction]] = [[]]
    labels: dict[str, int] = {}
    for item in kernel.body:
        if isinstance(item, Label):
            if bodies[-1]:
                bodies.append([])
            labels[item.name] = len(bodies) - 1
            continue
        bodies[-1].append(item)
        if ends_block(item):
            bodies.append([])
    return bodies, labels


def _targets(end: Instruction | None, labels: dict[str, int]) -> tuple[int, ...]:
    if end is None or end.op != "bra":
        return ()
    label = end.operands[0]
    if not isinstance(label, Name) or label.text not in labels:
        raise PtxError(f"a jump to {label}, which is nowhere", end.line)
    return (labels[label.text],)


_Effects = tuple[set[str], set[str], set[str]]


def _effects(body: list[Instruction]) -> _Effects:
    """Names read before written; surely written; written under a predicate only."""
    first_read: set[str] = set()
    sure: set[str] = set()
    maybe: set[str] = set()
    for ins in body:
        first_read.update(n for n in ins.reads if n not in sure)
        if ins.predicate is None:
            sure.update(ins.writes)
        else:
            kept = {n for n in ins.writes if n not in sure}
            maybe |= kept
            first_read |= kept
    return first_read, sure, maybe


def _liveness(
    effects: list[_Effects], ends: list[Instruction | None], targets: list[tuple[int, ...]]
) -> tuple[list[set[str]], list[set[str]]]:
    """Names live at the start and at the end of each block, by the usual backward iteration."""
    count = len(effects)
    live_in: list[set[str]] = [set() for _ in range(count)]
    live_out: list[set[str]] = [set() for _ in range(count)]
    follow = [successors(ends[i], targets[i], i, count) for i in range(count)]
    changed = True
    while changed:
        changed = False
        for i in reversed(range(count)):
            out = set().union(*(live_in[s] for s in follow[i]))
            new = effects[i][0] | (out - effects[i][1])
            if new != live_in[i] or out != live_out[i]:
                live_in[i], live_out[i], changed = new, out, True
    return live_in, live_out


def successors(
    end: Instruction | None, targets: tuple[int, ...], index: int, count: int
) -> tuple[int, ...]:
    """Blocks that may run next."""
    after = (index + 1,) if index + 1 < count else ()
    if end is None or end.op in ("bar", "barrier"):
        return after
    if end.op == "bra":
        return targets + (after if end.predicate is not None else ())
    return after if end.predicate is not None else ()
