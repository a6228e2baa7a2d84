"""Every tactic of `trtplug::CBR`, in order of their numbers; adding one edits this tuple."""

from __future__ import annotations

from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic, Tile


def _tile(rows: int, columns: int, depth: int, warp: tuple[int, int], stages: int) -> Tile:
    return Tile(
        rows=rows,
        columns=columns,
        depth=depth,
        warp_rows=warp[0],
        warp_columns=warp[1],
        stages=stages,
    )


TACTICS: tuple[Tactic, ...] = (
    Direct(
        name="direct_linear",
        number=1,
        use="whatever nothing else takes; the only one in FP32",
        layout="LINEAR",
    ),
    Direct(
        name="direct_hwc8",
        number=2,
        use="whatever nothing else takes: odd groups, kernels beyond 7x7",
        layout="HWC8",
    ),
    Gemm(
        name="igemm_128x128x32_s2",
        number=10,
        use="large maps with many output channels: half the reads of the smaller tiles",
        tile=_tile(128, 128, 32, (64, 64), 2),
        blocks=2,
    ),
    Gemm(
        name="igemm_128x128x32_s3",
        number=11,
        use="as igemm_128x128x32_s2, with one more tile under way, where 48 KiB may be used",
        tile=_tile(128, 128, 32, (64, 64), 3),
        blocks=2,
    ),
    Gemm(
        name="igemm_128x64x32_s3",
        number=12,
        use="large maps with up to 64 output channels",
        tile=_tile(128, 64, 32, (64, 32), 3),
        blocks=3,
    ),
    Gemm(
        name="igemm_128x64x32_s4",
        number=13,
        use="as igemm_128x64x32_s3, with one more tile under way, where 48 KiB may be used",
        tile=_tile(128, 64, 32, (64, 32), 4),
        blocks=3,
    ),
    Gemm(
        name="igemm_64x128x32_s3",
        number=14,
        use="middling maps with many output channels",
        tile=_tile(64, 128, 32, (32, 64), 3),
        blocks=3,
    ),
    Gemm(
        name="igemm_64x64x32_s4",
        number=15,
        use="small maps, and depths that are no multiple of 64",
        tile=_tile(64, 64, 32, (32, 32), 4),
        blocks=4,
    ),
    Gemm(
        name="igemm_64x64x64_s2",
        number=16,
        use="small maps: more blocks than the larger tiles give",
        tile=_tile(64, 64, 64, (32, 32), 2),
        blocks=4,
    ),
    Gemm(
        name="igemm_64x64x64_s3",
        number=17,
        use="as igemm_64x64x64_s2, with one more tile under way, where 48 KiB may be used",
        tile=_tile(64, 64, 64, (32, 32), 3),
        blocks=4,
    ),
    Gemm(
        name="igemm_64x32x64_s3",
        number=18,
        use="small maps with few output channels",
        tile=_tile(64, 32, 64, (32, 16), 3),
        blocks=5,
    ),
    Gemm(
        name="igemm_32x64x64_s3",
        number=19,
        use="the smallest maps, 7x7 at batch 1: as many blocks as there can be",
        tile=_tile(32, 64, 64, (16, 32), 3),
        blocks=5,
    ),
    Gemm(
        name="pointwise_128x128x32_s2",
        number=30,
        use="1x1 on large maps with many output channels",
        tile=_tile(128, 128, 32, (64, 64), 2),
        blocks=2,
        pointwise=True,
    ),
    Gemm(
        name="pointwise_128x64x32_s3",
        number=31,
        use="1x1 on large maps with few output channels",
        tile=_tile(128, 64, 32, (64, 32), 3),
        blocks=3,
        pointwise=True,
    ),
    Gemm(
        name="pointwise_64x64x64_s2",
        number=32,
        use="1x1 on small maps",
        tile=_tile(64, 64, 64, (32, 32), 2),
        blocks=4,
        pointwise=True,
    ),
    Gemm(
        name="pointwise_32x64x64_s3",
        number=33,
        use="1x1 on the smallest maps",
        tile=_tile(32, 64, 64, (16, 32), 3),
        blocks=5,
        pointwise=True,
    ),
    Stem(
        name="stem_128x32x32",
        number=40,
        use="first layers with up to 32 output channels: spares the change of layout before them",
        tile=_tile(128, 32, 32, (32, 32), 2),
        blocks=3,
        x_dtype=None,
    ),
    Stem(
        name="stem_128x64x32",
        number=41,
        use="first layers with more than 32 output channels",
        tile=_tile(128, 64, 32, (32, 64), 2),
        blocks=2,
        x_dtype=None,
    ),
    Stem(
        name="stem_float_128x32x32",
        number=42,
        use="as stem_128x32x32, from an FP32 input: spares the cast as well",
        tile=_tile(128, 32, 32, (32, 32), 2),
        blocks=3,
        x_dtype="float",
    ),
    Stem(
        name="stem_float_128x64x32",
        number=43,
        use="as stem_128x64x32, from an FP32 input: spares the cast as well",
        tile=_tile(128, 64, 32, (32, 64), 2),
        blocks=2,
        x_dtype="float",
    ),
    Depthwise(
        name="depthwise_1",
        number=50,
        use="depthwise on small maps: most threads",
        across=1,
    ),
    Depthwise(
        name="depthwise_2",
        number=51,
        use="depthwise on large maps: an input is read once for two outputs",
        across=2,
    ),
)


def find_tactic(name: str) -> Tactic | None:
    """The tactic of that name."""
    return next((t for t in TACTICS if t.name == name), None)
