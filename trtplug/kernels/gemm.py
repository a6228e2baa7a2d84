"""Implicit GEMM on Tensor Cores, 16-bit elements, FP32 sums: `igemm_*`, and `pointwise_*` for 1x1.

An implicit GEMM reads its weights as the very tiles that it wants in shared memory, swizzle and
all, so that a kernel copies them in a straight line.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trtplug.kernels.family import Exclusion, P, Tactic, Work, divide_up, fill, is_depthwise
from trtplug.kernels.problem import KernelProblem, padded
from trtplug.kernels.sm import SMS, WARP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.problem import Array
    from trtplug.target import Sm


MOST_TAPS = 56
"""Taps, and the chunks of a tile that may lie past the last one, are bits of 64."""
MOST_WIDTH = 32
"""Taps of one row of the kernel are collected in 32 bits (plugins/cbr/geometry.cuh)."""


@dataclass(frozen=True, slots=True)
class Tile:
    """What one block of an implicit GEMM makes, in elements."""

    rows: int
    """Output pixels."""
    columns: int
    """Output channels."""
    depth: int
    """Terms of the sum that one step takes."""
    warp_rows: int
    warp_columns: int
    stages: int
    """Tiles in shared memory."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * WARP

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one stage: 16-bit operands of both sides."""
        return (self.rows + self.columns) * self.depth * 2

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: the stages, then the tile of outputs in their place."""
        return max(self.stages * self.stage_bytes, self.rows * self.columns * 2)

    @property
    def size(self) -> str:
        """Such as `128x64x32`."""
        return f"{self.rows}x{self.columns}x{self.depth}"

    @property
    def cuda(self) -> str:
        """The tile as a type of plugins/cbr/igemm.cuh."""
        return f"trtplug::Tile<{', '.join(map(str, dataclasses.astuple(self)))}>"

    @property
    def packing(self) -> str:
        """Columns and depth; rows, warps and stages do not matter to weights."""
        return f"{self.columns}x{self.depth}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TileTactic(Tactic[P]):
    """What the families with a tile have in common: the last convolution is an implicit GEMM."""

    tensor_cores: ClassVar[bool] = True

    tile: Tile
    min_blocks_per_sm: int
    """As `__launch_bounds__` takes it."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.tile.threads

    def shared_bytes(self, sm: Sm) -> int:
        """Static shared memory of a block."""
        return self.tile.shared_bytes

    def min_blocks(self, problem: P, sm: Sm) -> int:
        """`min_blocks_per_sm`, but no more than shared memory allows where that is small."""
        fit = SMS[sm.number].shared_bytes // self.tile.shared_bytes
        return min(self.min_blocks_per_sm, fit)

    def grid(self, problem: P, sizes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Tiles of pixels, tiles of a group's output channels, groups."""
        batch, _, rows, columns = problem.output(sizes)
        last = problem.convs[-1]
        across = divide_up(last.group_outputs, self.tile.columns)
        return (divide_up(batch * rows * columns, self.tile.rows), across, last.attributes.group)

    def pack_bias(self, problem: P, bias: Array, conv: int = 0) -> Array:
        """Each group of the last convolution filled up to whole tiles, flat."""
        last = problem.convs[-1]
        groups = last.attributes.group
        columns = divide_up(last.group_outputs, self.tile.columns) * self.tile.columns
        return fill(bias.astype(np.float32).reshape(groups, -1), (groups, columns)).reshape(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm(TileTactic[KernelProblem]):
    """Implicit GEMM from HWC8 to HWC8."""

    includes: ClassVar[tuple[str, ...]] = ("cbr/igemm.cuh", "cbr/vector_loader.cuh")

    pointwise: bool = False
    """For 1x1 without padding: no tap is ever outside, so nothing is tested."""

    def tile_for(self, sm: Sm) -> Tile:
        """The tile on an SM: through registers there are 2 stages, one in work and one to fill."""
        return self.tile if SMS[sm.number].is_async else dataclasses.replace(self.tile, stages=2)

    def shared_bytes(self, sm: Sm) -> int:
        """Static shared memory of a block."""
        return self.tile_for(sm).shared_bytes

    def exists_on(self, sm: Sm) -> bool:
        """Whether no earlier tactic gives the same kernel on this SM."""
        return not any(
            other.number < self.number
            and other.pointwise == self.pointwise
            and other.tile_for(sm) == self.tile_for(sm)
            for other in TACTICS
        )

    def exclusions(self, problem: KernelProblem) -> Iterator[Exclusion]:
        """Reasons of the family's own."""
        if self.pointwise != is_pointwise(problem):
            yield Exclusion.NOT_POINTWISE if self.pointwise else Exclusion.POINTWISE
        if not fits_masks(problem):
            yield Exclusion.KERNEL_SIZE
        if problem.attributes.group > 1:
            if is_depthwise(problem):
                yield Exclusion.DEPTHWISE
            if problem.group_channels % 8 or problem.group_outputs % 8:
                yield Exclusion.GROUP_ALIGNMENT

    def min_blocks(self, problem: KernelProblem, sm: Sm) -> int:
        """Fewer than `min_blocks_per_sm` where a thread has more to keep, and would spill."""
        if SMS[sm.number].is_async:
            return max(1, self.min_blocks_per_sm - self._extra_registers(problem))
        fit = SMS[sm.number].shared_bytes // self.shared_bytes(sm)
        return min(self.min_blocks_per_sm, fit)

    def _extra_registers(self, problem: KernelProblem) -> int:
        """Blocks fewer that are to fit.

        Masks of taps beyond 32 bits take two registers a row; where a step in depth leaves the
        channels of a tap, each thread keeps its own position.
        """
        if problem.taps + self.tile.depth // 8 > 32:
            return 2
        return int(problem.group_channels % self.tile.depth != 0)

    def body(self, problem: KernelProblem, sm: Sm) -> str:
        """A call of plugins/cbr/igemm.cuh."""
        return gemm_call(self.tile_for(sm), "VectorLoader", copy_way(sm))

    def packing(self, problem: KernelProblem) -> str:
        """Such as `tiles_64x32`."""
        return f"tiles_{self.tile.packing}"

    def pack_weights(self, problem: KernelProblem, weights: Array, conv: int = 0) -> Array:
        """Tiles of [group, outputs / group, tap * padded channels], the channels innermost."""
        groups, inner = problem.attributes.group, problem.group_channels
        last = weights.reshape(groups, problem.group_outputs, inner, problem.taps).swapaxes(2, 3)
        filled = fill(last, (*last.shape[:3], padded(inner)))
        return pack_tiles(self.tile, filled.reshape(groups, problem.group_outputs, -1))

    def work(self, problem: KernelProblem) -> Work:
        """All operands are copied past the L1 cache."""
        steps = divide_up(problem.taps * padded(problem.group_channels), self.tile.depth)
        return gemm_work(self.tile, steps, l2_bytes=self.tile.stage_bytes * steps)


def is_pointwise(problem: KernelProblem) -> bool:
    """1x1 without padding: every tap of every output is inside."""
    return problem.taps == 1 and not any(problem.attributes.pads)


def fits_masks(problem: KernelProblem) -> bool:
    """Whether the masks of taps inside the image have a bit for each."""
    return problem.taps <= MOST_TAPS and problem.attributes.kernel_shape[1] <= MOST_WIDTH


def copy_way(sm: Sm) -> str:
    """How operands reach shared memory, as plugins/cbr/igemm.cuh has it."""
    return "Asynchronous" if SMS[sm.number].is_async else "Staged"


def gemm_call(tile: Tile, loader: str, way: str) -> str:
    """The statement that runs an implicit GEMM."""
    return (
        f"trtplug::implicit_gemm<Site, {tile.cuda}, trtplug::{loader}, trtplug::{way}>(\n"
        "      x, weights, bias, residual, y, at);"
    )


def gemm_work(tile: Tile, steps: int, l1_bytes: int = 0, l2_bytes: int = 0) -> Work:
    """What a block does for a tile, in that many steps in depth."""
    # A warp reads its rows and columns of both operands in each step; all is written once.
    warps = tile.threads // WARP
    read = warps * (tile.warp_rows + tile.warp_columns) * tile.depth * 2
    return Work(
        multiply_adds=tile.rows * tile.columns * tile.depth * steps,
        shared_bytes=(read + tile.stage_bytes) * steps,
        l1_bytes=l1_bytes,
        l2_bytes=l2_bytes,
        steps=steps,
    )


def pack_tiles(tile: Tile, rows: Array) -> Array:
    """[group, outputs, depth] as [group, column tile, depth tile, tile.columns, tile.depth]."""
    groups, outputs, depth = rows.shape
    across, deep = divide_up(outputs, tile.columns), divide_up(depth, tile.depth)
    filled = fill(rows, (groups, across * tile.columns, deep * tile.depth))
    chunks = filled.reshape(groups, across, tile.columns, deep, tile.depth // 8, 8)
    tiles = chunks.transpose(0, 1, 3, 2, 4, 5)
    places = swizzle(tile)[None, None, None, :, :, None]
    swizzled = np.empty_like(tiles)
    np.put_along_axis(swizzled, np.broadcast_to(places, tiles.shape), tiles, axis=4)
    return swizzled.reshape(groups, across, deep, tile.columns, tile.depth)


def swizzle(tile: Tile) -> Array:
    """Where chunk c of row r lies in its row; the same as `swizzled` in plugins/common/copy.cuh."""
    chunks = tile.depth // 8
    row, chunk = np.indices((tile.columns, chunks))
    mask = (row >> 1) & 3 if chunks == 4 else row & 7
    return np.asarray(chunk ^ mask)


def _gemm(family: str, number: int, tile: Tile, min_blocks_per_sm: int, use: str) -> Gemm:
    return Gemm(
        name=f"{family}_{tile.size}_s{tile.stages}",
        number=number,
        use=use,
        tile=tile,
        min_blocks_per_sm=min_blocks_per_sm,
        pointwise=family == "pointwise",
    )


TACTICS: tuple[Gemm, ...] = (
    _gemm("igemm", 10, Tile(128, 128, 32, 64, 64, 2), 2,
          "large maps with many output channels: half the reads of the smaller tiles"),
    _gemm("igemm", 11, Tile(128, 128, 32, 64, 64, 3), 2,
          "as igemm_128x128x32_s2, with one more tile under way, where 48 KiB may be used"),
    _gemm("igemm", 12, Tile(128, 64, 32, 64, 32, 3), 3, "large maps with up to 64 output channels"),
    _gemm("igemm", 13, Tile(128, 64, 32, 64, 32, 4), 3,
          "as igemm_128x64x32_s3, with one more tile under way, where 48 KiB may be used"),
    _gemm("igemm", 14, Tile(64, 128, 32, 32, 64, 3), 3, "middling maps with many output channels"),
    _gemm("igemm", 15, Tile(64, 64, 32, 32, 32, 4), 4,
          "small maps, and depths that are no multiple of 64"),
    _gemm("igemm", 16, Tile(64, 64, 64, 32, 32, 2), 4,
          "small maps: more blocks than the larger tiles give"),
    _gemm("igemm", 17, Tile(64, 64, 64, 32, 32, 3), 4,
          "as igemm_64x64x64_s2, with one more tile under way, where 48 KiB may be used"),
    _gemm("igemm", 18, Tile(64, 32, 64, 32, 16, 3), 5, "small maps with few output channels"),
    _gemm("igemm", 19, Tile(32, 64, 64, 16, 32, 3), 5,
          "the smallest maps, 7x7 at batch 1: as many blocks as there can be"),
    _gemm("pointwise", 30, Tile(128, 128, 32, 64, 64, 2), 2,
          "1x1 on large maps with many output channels"),
    _gemm("pointwise", 31, Tile(128, 64, 32, 64, 32, 3), 3,
          "1x1 on large maps with few output channels"),
    _gemm("pointwise", 32, Tile(64, 64, 64, 32, 32, 2), 4, "1x1 on small maps"),
    _gemm("pointwise", 33, Tile(32, 64, 64, 16, 32, 3), 5, "1x1 on the smallest maps"),
)  # fmt: skip
