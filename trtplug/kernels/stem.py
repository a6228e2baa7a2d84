"""First layers: implicit GEMM from LINEAR with few channels to HWC8, without a change of layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from trtplug.kernels.family import SECTOR_BYTES, Exclusion, Layout, Work, divide_up, spread_sectors
from trtplug.kernels.gemm import MOST_WIDTH, Tile, TileTactic, gemm_call, gemm_work, pack_tiles
from trtplug.kernels.problem import ELEMENT_BYTES, KernelProblem
from trtplug.kernels.sm import WARP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.kernels.problem import Array
    from trtplug.target import Sm


_MOST_CHANNELS = 4
_MOST_DEPTH = 512
"""The sum is written out term by term: beyond this the kernel becomes too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem(TileTactic[KernelProblem]):
    """A thread gathers its window from LINEAR; operands pass through registers on every SM."""

    includes: ClassVar[tuple[str, ...]] = ("cbr/igemm.cuh", "cbr/linear_loader.cuh")
    rank: ClassVar[int] = 0

    @property
    def x_layout(self) -> Layout:
        """Of the input."""
        return "LINEAR"

    def exclusions(self, problem: KernelProblem) -> Iterator[Exclusion]:
        """Reasons of the family's own."""
        if problem.attributes.group != 1:
            yield Exclusion.GROUPED
        if problem.channels > _MOST_CHANNELS:
            yield Exclusion.CHANNELS
        if problem.channels * problem.taps > _MOST_DEPTH or (
            max(problem.attributes.kernel_shape) > MOST_WIDTH
        ):
            yield Exclusion.DEPTH

    def body(self, problem: KernelProblem, sm: Sm) -> str:
        """A call of plugins/cbr/igemm.cuh."""
        return gemm_call(self.tile, "LinearLoader", "Staged")

    def packing(self, problem: KernelProblem) -> str:
        """Such as `stem_tiles_64x32`."""
        return f"stem_tiles_{self.tile.packing}"

    def pack_weights(self, problem: KernelProblem, weights: Array, conv: int = 0) -> Array:
        """Tiles of [outputs, channel * tap]."""
        return pack_tiles(self.tile, weights.reshape(1, problem.outputs, -1))

    def work(self, problem: KernelProblem) -> Work:
        """A warp's loads of windows are as many sectors as the stride spreads."""
        tile, terms = self.tile, problem.taps * problem.channels
        steps = divide_up(terms, tile.depth)
        size = ELEMENT_BYTES[problem.dtype]
        sectors = spread_sectors(size * problem.attributes.strides[1], size)
        weights = tile.columns * tile.depth * 2 * steps
        loads = terms * tile.threads // WARP * sectors * SECTOR_BYTES
        return gemm_work(tile, steps, l1_bytes=loads + weights)


TACTICS: tuple[Stem, ...] = (
    Stem(
        name="stem_128x32x32",
        number=40,
        use="first layers with up to 32 output channels: spares the change of layout before them",
        tile=Tile(128, 32, 32, 32, 32, 2),
        min_blocks_per_sm=3,
    ),
    Stem(
        name="stem_128x64x32",
        number=41,
        use="first layers with more than 32 output channels",
        tile=Tile(128, 64, 32, 32, 64, 2),
        min_blocks_per_sm=2,
    ),
)
"""Numbers 42 and 43 were those of stems that read FP32; they are not given again."""
