"""What the machine code of a kernel's main loop is made of, from the text that nvdisasm prints.

The main loop is the natural loop of the control-flow graph with most matrix instructions. Counting
from label to branch would be wrong: the assembler moves parts of a loop out of line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INSTRUCTION = re.compile(
    r"^\s*/\*(?P<address>[0-9a-f]{4,})\*/\s+"
    r"(?P<guard>@!?U?P\w+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>[^;]*);"
)
_TARGET = re.compile(r"\b0x([0-9a-f]+)\s*$")
_LEAVES = ("EXIT", "RET", "BRX", "JMX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One line of machine code."""

    address: int
    opcode: str
    """With its modifiers, such as `HMMA.16816.F32`."""
    guarded: bool
    """Whether a predicate decides if it runs."""
    target: int | None
    """Address that it branches to, where it is a branch."""

    @property
    def kind(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Instructions that run one after the other."""

    instructions: tuple[Instruction, ...]
    followers: tuple[int, ...]
    """Places of the blocks that may come next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MainLoop:
    """Counts over one pass of a kernel's main loop."""

    instructions: int
    counts: tuple[tuple[str, int], ...]
    """Opcode without modifiers -> instructions, most first."""

    def count(self, *kinds: str) -> int:
        """Instructions of these kinds."""
        return sum(number for kind, number in self.counts if kind in kinds)

    @property
    def mma(self) -> int:
        """Matrix instructions."""
        return self.count(*MATRIX)

    @property
    def mma_share(self) -> float:
        """Share of all instructions that is matrix instructions, 0 to 1."""
        return self.mma / self.instructions


MATRIX = ("HMMA", "HGMMA", "IMMA", "UTCHMMA")
"""Opcodes of the Tensor Cores."""
FEEDS = ("LDGSTS", "LDG", "UBLKCP", "LDS", "LDSM")
"""Opcodes that bring operands: a loop without any computes nothing on a tensor."""


def find_main_loop(text: str) -> MainLoop | None:
    """The main loop of one kernel, as `disassemble` gives it; None where no loop is in it.

    Of loops with as many matrix instructions the shortest is taken, so an inner loop and not the
    one around it; where no loop has any, the one with most instructions that feed operands.
    """
    blocks = _blocks(text)
    loops = [_count([blocks[b] for b in body]) for body in _loops(blocks)]
    # The branch to itself that ends every kernel is no loop.
    return max(
        (loop for loop in loops if loop.mma or loop.count(*FEEDS)),
        key=lambda loop: (loop.mma, loop.count(*FEEDS) if not loop.mma else 0, -loop.instructions),
        default=None,
    )


def _count(blocks: Sequence[Block]) -> MainLoop:
    counts: dict[str, int] = {}
    for block in blocks:
        for instruction in block.instructions:
            counts[instruction.kind] = counts.get(instruction.kind, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return MainLoop(instructions=sum(counts.values()), counts=tuple(ordered))


def _instructions(text: str) -> Iterator[Instruction]:
    for line in text.splitlines():
        found = _INSTRUCTION.match(line)
        if found is None:
            continue
        # ptxas leaves loops by `@!P1 CALL.REL.NOINC` too, as a jump out of line.
        branches = found["opcode"].partition(".")[0] in ("BRA", "JMP", "CALL")
        target = _TARGET.search(found["rest"]) if branches else None
        yield Instruction(
            address=int(found["address"], 16),
            opcode=found["opcode"],
            # `BRA P0, 0x80` and `BRA.U UP0, 0x80` are guarded as well.
            guarded=bool(found["guard"]) or bool(re.match(r"\s*!?U?P\d", found["rest"])),
            target=int(target[1], 16) if target else None,
        )


def _blocks(text: str) -> list[Block]:
    """Basic blocks: cut before what is branched to, and after branches."""
    instructions = tuple(_instructions(text))
    targets = {i.target for i in instructions if i.target is not None}
    parts: list[list[Instruction]] = []
    cut = True
    for instruction in instructions:
        if cut or instruction.address in targets:
            parts.append([])
        parts[-1].append(instruction)
        cut = instruction.target is not None or instruction.kind in _LEAVES
    starts = {part[0].address: place for place, part in enumerate(parts)}
    return [
        Block(instructions=tuple(part), followers=_followers(place, part[-1], starts, len(parts)))
        for place, part in enumerate(parts)
    ]


def _followers(
    place: int, last: Instruction, starts: Mapping[int, int], blocks: int
) -> tuple[int, ...]:
    found = []
    if last.target is not None and last.target in starts:
        found.append(starts[last.target])
    leaves = last.target is not None or last.kind in _LEAVES
    # What is called may come back.
    ends = leaves and not last.guarded and last.kind != "CALL"
    if not ends and place + 1 < blocks:
        found.append(place + 1)
    return tuple(dict.fromkeys(found))


def _loops(blocks: Sequence[Block]) -> Iterator[frozenset[int]]:
    """Bodies of the natural loops, those with one head joined."""
    before: list[list[int]] = [[] for _ in blocks]
    for place, block in enumerate(blocks):
        for follower in block.followers:
            before[follower].append(place)
    after = [block.followers for block in blocks]
    starts = [place for place, ways in enumerate(before) if not ways or place == 0]
    for head, ways in enumerate(before):
        # The head dominates a block that no way reaches but through the head.
        others = _reached(starts, after, avoid=head)
        tails = [place for place in ways if place not in others]
        if tails:
            yield frozenset((head, *_reached(tails, before, avoid=head)))


def _reached(starts: Sequence[int], ways: Sequence[Sequence[int]], avoid: int) -> set[int]:
    """Blocks that can be reached from `starts` without passing one."""
    todo = [place for place in starts if place != avoid]
    found = set(todo)
    while todo:
        new = {place for place in ways[todo.pop()] if place != avoid} - found
        found |= new
        todo += new
    return found
