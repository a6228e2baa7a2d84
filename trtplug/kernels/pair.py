"""Depthwise and pointwise convolution in one kernel, for `trtplug::CBRPair`.

One block makes the channels between the convolutions, slice by slice, and multiplies them. What is
packed is packed as for the two kernels that it replaces.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trtplug.kernels.depthwise import Depthwise
from trtplug.kernels.family import Exclusion, Tactic, Work, divide_up
from trtplug.kernels.gemm import Gemm, Tile, TileTactic, copy_way, fits_masks, gemm_work
from trtplug.kernels.problem import PairProblem, padded
from trtplug.kernels.sm import SMS, WARP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.kernels.problem import Array, KernelProblem
    from trtplug.target import Sm


INSTRUCTIONS = 3.5
"""For a multiply-add of the depthwise part: itself, the conversion of its input, and its share of
loads, addresses and conversions of weights; counted in pair_128x64x32 on sm_80."""

HALF_CHUNK = 4
"""Channels of a chunk of 8 that one load of FP32 brings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTactic(TileTactic[PairProblem]):
    """The depthwise part is the A operand of an implicit GEMM, made and not loaded.

    The tile is that of the pointwise product; of its two stages one is in the product while the
    next is made.
    """

    op: ClassVar[str] = "CBRPair"
    kernel: ClassVar[str] = "trtplug_cbr_pair"
    structs: ClassVar[tuple[str, ...]] = ("First", "Second")
    includes: ClassVar[tuple[str, ...]] = ("cbr_pair/pair.cuh",)
    rank: ClassVar[int] = 2

    @property
    def parts(self) -> tuple[Tactic[KernelProblem], Tactic[KernelProblem]]:
        """The tactics whose packings it reads, one for each convolution."""
        named = {"name": self.name, "number": self.number, "use": self.use}
        blocks = self.min_blocks_per_sm
        return (
            Depthwise(**named, across=1),  # type: ignore[arg-type]
            Gemm(**named, tile=self.tile, min_blocks_per_sm=blocks),  # type: ignore[arg-type]
        )

    def exclusions(self, problem: PairProblem) -> Iterator[Exclusion]:
        """Reasons of the family's own."""
        if not fits_masks(problem.depthwise):
            yield Exclusion.KERNEL_SIZE

    def min_blocks(self, problem: PairProblem, sm: Sm) -> int:
        """Masks of taps beyond 32 bits take two registers a row: as many blocks would spill."""
        blocks = self.min_blocks_per_sm - int(problem.depthwise.taps > 32)
        return min(blocks, SMS[sm.number].shared_bytes // self.tile.shared_bytes)

    def parameters(self, element: str) -> str:
        """The kernel's parameters in CUDA up to the residual."""
        return (
            f"const {element}* x, const {element}* between, const float* between_bias,\n"
            f"    const {element}* weights, const float* bias, "
        )

    def body(self, problem: PairProblem, sm: Sm) -> str:
        """A call of plugins/cbr_pair/pair.cuh."""
        types = f"First, Second, {self.tile.cuda}, trtplug::{copy_way(sm)}"
        return (
            f"trtplug::depthwise_pointwise<{types}>(\n"
            "      x, between, between_bias, weights, bias, residual, y, at);"
        )

    def packing(self, problem: PairProblem) -> str:
        """Such as `pair_64x32`."""
        return f"pair_{self.tile.packing}"

    def pack_weights(self, problem: PairProblem, weights: Array, conv: int = 0) -> Array:
        """Depthwise ones as [tap, padded channels], pointwise ones as tiles."""
        return self.parts[conv].pack_weights(problem.convs[conv], weights)

    def pack_bias(self, problem: PairProblem, bias: Array, conv: int = 0) -> Array:
        """Of the depthwise one first the lower half of every chunk of 8, then the upper ones.

        So lanes beside each other read what lies beside each other.
        """
        packed = self.parts[conv].pack_bias(problem.convs[conv], bias)
        if conv:
            return packed
        return np.ascontiguousarray(packed.reshape(-1, 2, HALF_CHUNK).swapaxes(0, 1)).reshape(-1)

    def work(self, problem: PairProblem) -> Work:
        """The work of a block in its product, the depthwise part, and all the bytes it moves.

        Each tap of what lies between is loaded through the L1 cache, for each pixel; each warp
        reads the weights and biases of that part for itself. Weights of the product are copied.
        """
        tile, channels = self.tile, padded(problem.channels)
        steps = divide_up(channels, tile.depth)
        taps, warps = problem.depthwise.taps, tile.threads // WARP
        read = channels * 2 * taps * (tile.rows + warps) + channels * 4 * warps
        work = gemm_work(tile, steps, l1_bytes=read, l2_bytes=tile.columns * tile.depth * 2 * steps)
        # Sums are often short, so the end counts too: the output goes out through shared memory,
        # and a residual comes in through it.
        ending = tile.rows * tile.columns * (8 if problem.has_residual else 4)
        return dataclasses.replace(
            work,
            shared_bytes=work.shared_bytes + ending,
            # A row of the kernel waits for its inputs; the product for what is made of them.
            steps=steps * (1 + problem.attributes.depthwise.kernel_shape[0]),
            fp32_multiply_adds=self.depthwise_multiply_adds(problem) * INSTRUCTIONS,
        )

    def depthwise_multiply_adds(self, problem: PairProblem) -> int:
        """Multiply-adds of a block for what lies between the convolutions."""
        return self.tile.rows * padded(problem.channels) * problem.depthwise.taps


def _pair(number: int, tile: Tile, min_blocks_per_sm: int, use: str) -> PairTactic:
    return PairTactic(
        name=f"pair_{tile.size}",
        number=number,
        use=use,
        tile=tile,
        min_blocks_per_sm=min_blocks_per_sm,
    )


TACTICS: tuple[PairTactic, ...] = (
    _pair(70, Tile(128, 64, 32, 32, 32, 2), 2, "large maps with up to 64 output channels"),
    _pair(71, Tile(64, 128, 32, 32, 64, 2), 3, "middling maps with up to 128 output channels"),
    _pair(72, Tile(64, 256, 32, 64, 32, 2), 2,
          "up to 256 output channels: the depthwise part is made once for all of them"),
    _pair(73, Tile(64, 32, 64, 16, 16, 2), 2, "maps with up to 32 output channels"),
    _pair(74, Tile(32, 64, 64, 16, 32, 2), 4,
          "the smallest maps, 7x7 and 14x14 at batch 1: as many blocks as there can be"),
)  # fmt: skip
