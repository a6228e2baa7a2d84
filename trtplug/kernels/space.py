"""Which tactics can run a problem on an SM, and why the others cannot.

Every tactic that is called legal computes the right numbers; whether it is fast is another matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from trtplug.kernels.catalog import TACTICS
from trtplug.kernels.launch import launch_of
from trtplug.kernels.problem import ELEMENT_BYTES, Problem, padded
from trtplug.kernels.tactic import FIRST_ASYNC_SM, Depthwise, Direct, Gemm, Stem, Tactic
from trtplug.kernels.usage import LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.target import Sm


DEFAULT_SHARED_BYTES = 47 * 1024
"""What TensorRT leaves to a block at its strictest: 48 KiB less the 1 KiB that the system takes."""

STATIC_SHARED_BYTES = 48 * 1024
"""The most that a kernel may declare."""

LARGEST_INDEX = 2**31 - 2**10
"""Indices of pixels and threads are int32, and the last block may reach beyond the last one."""

MOST_TAPS = 56
"""Taps, and the chunks of a tile that may lie past the last one, are bits of 64."""

_MOST_STEM_CHANNELS = 4
_MOST_STEM_DEPTH = 512
"""The sum is written out term by term: beyond this the kernel becomes too long."""

MOST_BLOCKS_DOWN = 65535
"""CUDA's limit on the second and third extent of a grid."""


class Exclusion(str, Enum):
    """Why a tactic is not legal for a problem on an SM."""

    sentence: str
    """One sentence for people."""

    def __new__(cls, code: str, sentence: str) -> Exclusion:
        """Members are their code; the sentence is an attribute."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    SM = ("sm", "No kernel is made for this SM.")
    DTYPE = ("dtype", "The tactic does not compute in this type.")
    SM_DTYPE = ("sm_dtype", "The SM has no arithmetic for this type; BF16 begins with sm_80.")
    SHARED_MEMORY = ("shared_memory", "A block takes more shared memory than it may.")
    STAGES = ("stages", "Through registers, on sm_75, tiles have two stages whatever the tactic: "
              "the first tactic with the tile stands for all.")  # fmt: skip
    POINTWISE = ("pointwise", "A 1x1 kernel without padding: the pointwise tactics are the same "
                 "without tests of the borders.")  # fmt: skip
    NOT_POINTWISE = ("not_pointwise", "The kernel is not 1x1, or the input is padded.")
    NOT_DEPTHWISE = ("not_depthwise", "Not every channel has one filter of its own.")
    DEPTHWISE = (
        "depthwise",
        "Every channel has a filter of its own: no sum over channels to tile.",
    )
    GROUP_ALIGNMENT = ("group_alignment", "A group's channels, in or out, are no multiple of 8.")
    GROUPED = ("grouped", "The tactic takes one group only.")
    KERNEL_SIZE = ("kernel_size", "The kernel has more taps than the tactic's masks hold.")
    CHANNELS = ("channels", "Too many input channels: the tactic is for 1 to 4.")
    DEPTH = ("depth", "The sum has too many terms to be written out.")
    OFFSETS = ("offsets", "Offsets within one image, or indices over all, would leave 32 bits.")
    GRID = ("grid", "The grid would have more blocks along an axis than CUDA takes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tactic and whether it may run."""

    tactic: Tactic
    exclusion: Exclusion | None
    """None where it is legal."""


def list_tactics(
    problem: Problem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
) -> tuple[Candidate, ...]:
    """Every tactic, in order of number, with the first reason against it.

    Args:
        problem: what is to be computed.
        sm: where.
        shared_bytes: what a block may take of shared memory.
    """
    return tuple(
        Candidate(tactic=t, exclusion=next(_reasons(t, problem, sm, shared_bytes), None))
        for t in TACTICS
    )


def legal_tactics(
    problem: Problem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
) -> tuple[Tactic, ...]:
    """Those that may run; never empty for FP32 and FP16 on an SM that kernels are made for."""
    return tuple(c.tactic for c in list_tactics(problem, sm, shared_bytes) if c.exclusion is None)


def shared_bytes_of(tactic: Tactic, sm: Sm) -> int:
    """Shared memory of a block."""
    match tactic:
        case Gemm():
            return tactic.tile_for(sm.number).shared_bytes
        case Stem():
            return tactic.tile.shared_bytes
        case Depthwise() | Direct():
            return 0


def _reasons(tactic: Tactic, problem: Problem, sm: Sm, shared_bytes: int) -> Iterator[Exclusion]:
    if sm.number not in LIMITS:
        yield Exclusion.SM
        return
    if not _computes_in(tactic, problem.dtype):
        yield Exclusion.DTYPE
    if problem.dtype == "bfloat16" and sm.number < FIRST_ASYNC_SM:
        yield Exclusion.SM_DTYPE
    yield from _shape_reasons(tactic, problem)
    if is_repeated(tactic, sm):
        yield Exclusion.STAGES
    if shared_bytes_of(tactic, sm) > min(shared_bytes, STATIC_SHARED_BYTES):
        yield Exclusion.SHARED_MEMORY
    yield from _size_reasons(tactic, problem)


def is_repeated(tactic: Tactic, sm: Sm) -> bool:
    """Whether an earlier tactic gives the same kernel on this SM."""
    if not isinstance(tactic, Gemm):
        return False
    tile = tactic.tile_for(sm.number)
    return any(
        isinstance(other, Gemm)
        and other.number < tactic.number
        and other.pointwise == tactic.pointwise
        and other.tile_for(sm.number) == tile
        for other in TACTICS
    )


def _computes_in(tactic: Tactic, dtype: str) -> bool:
    return (ELEMENT_BYTES[dtype] == 4) == (tactic.layout == "LINEAR")


def _shape_reasons(tactic: Tactic, problem: Problem) -> Iterator[Exclusion]:
    match tactic:
        case Gemm():
            yield from _gemm_reasons(tactic, problem)
        case Stem():
            yield from _stem_reasons(problem)
        case Depthwise():
            if not is_depthwise(problem):
                yield Exclusion.NOT_DEPTHWISE
            if problem.taps > MOST_TAPS:
                yield Exclusion.KERNEL_SIZE
        case Direct():
            return


def is_depthwise(problem: Problem) -> bool:
    """One filter for each channel."""
    return problem.attributes.group == problem.channels == problem.outputs


def is_pointwise(problem: Problem) -> bool:
    """1x1 without padding: every tap of every output is inside."""
    return problem.taps == 1 and not any(problem.attributes.pads)


def _gemm_reasons(tactic: Gemm, problem: Problem) -> Iterator[Exclusion]:
    if tactic.pointwise != is_pointwise(problem):
        yield Exclusion.NOT_POINTWISE if tactic.pointwise else Exclusion.POINTWISE
    if problem.taps > MOST_TAPS:
        yield Exclusion.KERNEL_SIZE
    if problem.attributes.group > 1:
        if is_depthwise(problem):
            yield Exclusion.DEPTHWISE
        if problem.group_channels % 8 or problem.group_outputs % 8:
            yield Exclusion.GROUP_ALIGNMENT


def _stem_reasons(problem: Problem) -> Iterator[Exclusion]:
    if problem.attributes.group != 1:
        yield Exclusion.GROUPED
    if problem.channels > _MOST_STEM_CHANNELS:
        yield Exclusion.CHANNELS
    if problem.channels * problem.taps > _MOST_STEM_DEPTH or (
        max(problem.attributes.kernel_shape) > 32
    ):
        yield Exclusion.DEPTH


def _size_reasons(tactic: Tactic, problem: Problem) -> Iterator[Exclusion]:
    largest = problem.x.max
    batch, _, rows, columns = problem.output(largest)
    launch = launch_of(tactic, problem, largest)
    threads = launch.grid[0] * launch.block[0]
    # The window may begin before the image and end after it.
    reach = sum(problem.attributes.pads)
    image = (largest[2] + reach) * (largest[3] + reach) * padded(problem.channels)
    if max(batch * rows * columns, threads) > LARGEST_INDEX or image > LARGEST_INDEX:
        yield Exclusion.OFFSETS
    if max(launch.grid[1:]) > MOST_BLOCKS_DOWN:
        yield Exclusion.GRID
