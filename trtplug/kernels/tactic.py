"""What a tactic is: a kernel's shape, before it meets a convolution. Knows no problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Layout = Literal["LINEAR", "HWC8"]
"""Formats of TensorRT: LINEAR is [N, C, H, W], HWC8 is [N, H, W, C filled up to 8]."""


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return self.rows // self.warp_rows * (self.columns // self.warp_columns) * 32

    @property
    def stage_bytes(self) -> int:
        """Shared memory of one stage: 16-bit operands of both sides."""
        return (self.rows + self.columns) * self.depth * 2

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: the stages, then the tile of outputs in their place."""
        return max(self.stages * self.stage_bytes, self.rows * self.columns * 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """Implicit GEMM on Tensor Cores, 16-bit elements, FP32 sums."""

    name: str
    number: int
    """What TensorRT knows it by; positive, and never given to another."""
    use: str
    """One sentence: when it should win."""
    tile: Tile
    blocks: int
    """Blocks that an SM is to hold: the compiler's limit on registers follows from it."""
    pointwise: bool = False
    """For 1x1 without padding: no tap is ever outside, so nothing is tested."""

    @property
    def layout(self) -> Layout:
        """Of input, residual and output."""
        return "HWC8"

    def tile_for(self, sm: int) -> Tile:
        """The tile on an SM: through registers there are 2 stages, one in work and one to fill."""
        stages = self.tile.stages if sm >= FIRST_ASYNC_SM else 2
        return Tile(
            rows=self.tile.rows,
            columns=self.tile.columns,
            depth=self.tile.depth,
            warp_rows=self.tile.warp_rows,
            warp_columns=self.tile.warp_columns,
            stages=stages,
        )


FIRST_ASYNC_SM = 80
"""The first SM with asynchronous copies, and with BF16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stem:
    """Implicit GEMM whose input is LINEAR with few channels; the output is HWC8."""

    name: str
    number: int
    use: str
    tile: Tile
    blocks: int
    x_dtype: str | None
    """Type of the input where it is not the op's own."""
    layout: Layout = "HWC8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Depthwise:
    """One filter for each channel, 8 channels a thread."""

    name: str
    number: int
    use: str
    across: int
    """Neighbouring outputs that a thread makes."""
    layout: Layout = "HWC8"
    threads: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """Straight from the definition."""

    name: str
    number: int
    use: str
    layout: Layout
    threads: int = 128


Tactic = Gemm | Stem | Depthwise | Direct
