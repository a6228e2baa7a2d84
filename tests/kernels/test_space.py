"""Which tactics are legal, and why the others are not."""

import pytest
from hypothesis import given, settings

from tests.kernels.problems import problem, problems
from trtplug.kernels.catalog import TACTICS
from trtplug.kernels.launch import launch_of
from trtplug.kernels.space import (
    DEFAULT_SHARED_BYTES,
    Exclusion,
    legal_tactics,
    list_tactics,
    shared_bytes_of,
)
from trtplug.kernels.usage import LIMITS
from trtplug.target import Sm

DENSE = problem((1, 64, 14, 14), 64)
POINTWISE = problem((1, 64, 14, 14), 64, kernel=(1, 1), pads=(0, 0, 0, 0))

CASES = [
    (Exclusion.SM, "direct_hwc8", DENSE, 70),
    (Exclusion.DTYPE, "direct_linear", DENSE, 80),
    (Exclusion.DTYPE, "igemm_64x64x64_s2", problem((1, 8, 9, 9), 8, dtype="float"), 80),
    (Exclusion.SM_DTYPE, "direct_hwc8", problem((1, 8, 9, 9), 8, dtype="bfloat16"), 75),
    (Exclusion.SHARED_MEMORY, "igemm_128x128x32_s3", DENSE, 80),
    (Exclusion.STAGES, "igemm_128x128x32_s3", DENSE, 75),
    (Exclusion.POINTWISE, "igemm_64x64x64_s2", POINTWISE, 80),
    (Exclusion.NOT_POINTWISE, "pointwise_64x64x64_s2", DENSE, 80),
    (Exclusion.NOT_DEPTHWISE, "depthwise_1", problem((1, 8, 9, 9), 16, group=8), 80),
    (Exclusion.DEPTHWISE, "igemm_64x64x64_s2", problem((1, 8, 9, 9), 8, group=8), 80),
    (Exclusion.GROUP_ALIGNMENT, "igemm_64x64x64_s2", problem((1, 24, 9, 9), 16, group=2), 80),
    (Exclusion.GROUPED, "stem_128x32x32", problem((1, 4, 9, 9), 8, group=2), 80),
    (Exclusion.KERNEL_SIZE, "igemm_64x64x64_s2", problem((1, 8, 19, 19), 8, kernel=(8, 8)), 80),
    (Exclusion.CHANNELS, "stem_128x32x32", DENSE, 80),
    (Exclusion.DEPTH, "stem_128x32x32", problem((1, 3, 40, 40), 8, kernel=(15, 15)), 80),
    (Exclusion.OFFSETS, "direct_hwc8", problem((2**15, 8, 256, 256), 8), 80),
    (Exclusion.GRID, "direct_linear", problem((1, 8, 9, 9), 2**18 + 4, dtype="float"), 80),
]


@pytest.mark.parametrize(("reason", "name", "given", "sm"), CASES)
def test_each_reason(reason, name, given, sm):
    found = {c.tactic.name: c.exclusion for c in list_tactics(given, Sm(sm))}
    assert found[name] is reason
    assert list(found) == [t.name for t in TACTICS]


def test_every_reason_has_a_case_and_a_sentence():
    assert {reason for reason, *_ in CASES} == set(Exclusion)
    assert all(reason.sentence.endswith(".") for reason in Exclusion)


@settings(deadline=None)
@given(problems(dtypes=("float16", "float")))
def test_something_takes_every_problem_everywhere(given):
    for sm in LIMITS:
        legal = legal_tactics(given, Sm(sm))
        assert legal
        assert all(shared_bytes_of(t, Sm(sm)) <= DEFAULT_SHARED_BYTES for t in legal)


def test_numbers_and_names_are_unique_and_positive():
    assert len({t.number for t in TACTICS}) == len({t.name for t in TACTICS}) == len(TACTICS)
    assert min(t.number for t in TACTICS) > 0


@settings(deadline=None)
@given(problems(dtypes=("float16", "float")))
def test_a_grid_covers_every_output(given):
    batch, outputs, rows, columns = given.output(given.x.opt)
    for tactic in legal_tactics(given, Sm(80), 48 * 1024):
        grid = launch_of(tactic, given, given.x.opt).grid
        assert min(grid) >= 1
        tile = getattr(tactic, "tile", None)
        if tile is not None:
            assert grid[0] * tile.rows >= batch * rows * columns
            assert (grid[0] - 1) * tile.rows < batch * rows * columns
            assert grid[1] * tile.columns * grid[2] >= outputs
