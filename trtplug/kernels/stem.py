"""First layers: implicit GEMM from LINEAR with few channels to HWC8, without a change of layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from trtplug.kernels.family import SECTOR_BYTES, Exclusion, Layout, Tactic, Work, divide_up
from trtplug.kernels.gemm import (
    MOST_WIDTH,
    Tile,
    gemm_call,
    gemm_grid,
    gemm_work,
    pack_gemm_bias,
    pack_tiles,
    staged_blocks,
)
from trtplug.kernels.problem import ELEMENT_BYTES, KernelProblem
from trtplug.kernels.sm import SMS, WARP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from trtplug.target import Sm

    Array = NDArray[Any]


_MOST_CHANNELS = 4
_MOST_DEPTH = 512
"""The sum is written out term by term: beyond this the kernel becomes too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem(Tactic[KernelProblem]):
    """A thread gathers its window from LINEAR; operands pass through registers on every SM."""

    includes: ClassVar[tuple[str, ...]] = ("cbr/igemm.cuh", "cbr/linear_loader.cuh")
    tensor_cores: ClassVar[bool] = True
    rank: ClassVar[int] = 0

    tile: Tile
    min_blocks_per_sm: int
    """As `__launch_bounds__` takes it."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.tile.threads

    @property
    def x_layout(self) -> Layout:
        """Of the input."""
        return "LINEAR"

    def shared_bytes(self, sm: Sm) -> int:  # noqa: ARG002 - as the base has it
        """Static shared memory of a block."""
        return self.tile.shared_bytes

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

    def min_blocks(self, problem: KernelProblem, sm: Sm) -> int:  # noqa: ARG002 - as the base
        """`min_blocks_per_sm`, on sm_75 no more than shared memory allows."""
        if SMS[sm.number].is_async:
            return self.min_blocks_per_sm
        return staged_blocks(self.min_blocks_per_sm, self.tile, sm)

    def body(self, problem: KernelProblem, sm: Sm) -> str:  # noqa: ARG002 - as the base has it
        """A call of plugins/cbr/igemm.cuh."""
        return gemm_call(self.tile, "LinearLoader", "Staged")

    def grid(self, problem: KernelProblem, sizes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Tiles of pixels, tiles of output channels, 1."""
        return gemm_grid(self.tile, problem, sizes)

    def packing(self, problem: KernelProblem) -> str:  # noqa: ARG002 - as the base has it
        """Such as `stem_tiles_64x32`."""
        return f"stem_tiles_{self.tile.packing}"

    def pack_weights(
        self,
        problem: KernelProblem,
        weights: Array,
        conv: int = 0,  # noqa: ARG002
    ) -> Array:
        """Tiles of [outputs, channel * tap]."""
        return pack_tiles(self.tile, weights.reshape(1, problem.outputs, -1))

    def pack_bias(self, problem: KernelProblem, bias: Array, conv: int = 0) -> Array:  # noqa: ARG002
        """Filled up to whole tiles."""
        return pack_gemm_bias(self.tile, problem, bias)

    def work(self, problem: KernelProblem) -> Work:
        """A warp's loads of windows are as many sectors as the stride spreads."""
        tile, terms = self.tile, problem.taps * problem.channels
        steps = divide_up(terms, tile.depth)
        size = ELEMENT_BYTES[problem.dtype]
        sectors = spread_sectors(size * problem.attributes.strides[1], size)
        weights = tile.columns * tile.depth * 2 * steps
        loads = terms * tile.threads // WARP * sectors * SECTOR_BYTES
        return gemm_work(tile, steps, l1_bytes=loads + weights)


def spread_sectors(step_bytes: int, size: int) -> int:
    """Sectors of a warp's load of elements of `size` bytes that lie `step_bytes` apart."""
    return min(WARP, -(-((WARP - 1) * step_bytes + size) // SECTOR_BYTES))


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
