"""Every tactic of `trtplug::CBRPair`, in order of their numbers; adding one edits this tuple."""

from __future__ import annotations

from dataclasses import dataclass

from trtplug.kernels.tactic import Depthwise, Gemm, Layout, Tile


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTactic:
    """One block makes the channels between the convolutions, slice by slice, and multiplies them.

    It takes the packing of the two tactics that it stands for.
    """

    name: str
    number: int
    """What TensorRT knows it by; positive, and never given to another."""
    use: str
    """One sentence: when it should win."""
    tile: Tile
    """Of the pointwise product; two stages, one in the product while the next is made."""
    blocks: int
    """Blocks that an SM is to hold: the compiler's limit on registers follows from it."""

    @property
    def layout(self) -> Layout:
        """Of input, residual and output."""
        return "HWC8"

    @property
    def first(self) -> Depthwise:
        """How the weights of the depthwise convolution are packed."""
        return Depthwise(name=self.name, number=self.number, use=self.use, across=1)

    @property
    def second(self) -> Gemm:
        """How weights and bias of the pointwise convolution are packed."""
        return Gemm(
            name=self.name,
            number=self.number,
            use=self.use,
            tile=self.tile,
            blocks=self.blocks,
            pointwise=True,
        )


def _tile(rows: int, columns: int, depth: int, warp: tuple[int, int]) -> Tile:
    return Tile(
        rows=rows,
        columns=columns,
        depth=depth,
        warp_rows=warp[0],
        warp_columns=warp[1],
        stages=2,
    )


PAIR_TACTICS: tuple[PairTactic, ...] = (
    PairTactic(
        name="pair_128x64x32",
        number=70,
        use="large maps with up to 64 output channels",
        tile=_tile(128, 64, 32, (32, 32)),
        blocks=2,
    ),
    PairTactic(
        name="pair_64x128x32",
        number=71,
        use="middling maps with up to 128 output channels",
        tile=_tile(64, 128, 32, (32, 64)),
        blocks=3,
    ),
    PairTactic(
        name="pair_64x256x32",
        number=72,
        use="up to 256 output channels: the depthwise part is made once for all of them",
        tile=_tile(64, 256, 32, (64, 32)),
        blocks=2,
    ),
    PairTactic(
        name="pair_64x32x64",
        number=73,
        use="maps with up to 32 output channels",
        tile=_tile(64, 32, 64, (16, 16)),
        blocks=2,
    ),
    PairTactic(
        name="pair_32x64x64",
        number=74,
        use="the smallest maps, 7x7 and 14x14 at batch 1: as many blocks as there can be",
        tile=_tile(32, 64, 64, (16, 32)),
        blocks=4,
    ),
)


def find_pair_tactic(name: str) -> PairTactic | None:
    """The tactic of that name."""
    return next((t for t in PAIR_TACTICS if t.name == name), None)
