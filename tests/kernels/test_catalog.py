"""Which tactics are legal, and why the others are not."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.kernels import PAIRS, SHARED_BYTES, SINGLES
from tests.kernels.pair_problems import pair, pairs
from tests.kernels.problems import problem, problems
from trtplug.kernels.catalog import CATALOG, Catalog
from trtplug.kernels.family import DEFAULT_SHARED_BYTES, Exclusion
from trtplug.kernels.sm import SMS
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
    (Exclusion.KERNEL_SIZE, "igemm_64x64x64_s2", problem((1, 8, 3, 40), 8, kernel=(1, 33)), 80),
    (Exclusion.CHANNELS, "stem_128x32x32", DENSE, 80),
    (Exclusion.DEPTH, "stem_128x32x32", problem((1, 3, 40, 40), 8, kernel=(15, 15)), 80),
    (Exclusion.OFFSETS, "direct_hwc8", problem((2**15, 8, 256, 256), 8), 80),
    (Exclusion.GRID, "direct_linear", problem((1, 8, 9, 9), 2**18 + 4, dtype="float"), 80),
]


@pytest.mark.parametrize(("reason", "name", "given", "sm"), CASES)
def test_each_reason(reason, name, given, sm):
    found = {c.tactic.name: c.exclusion for c in CATALOG.list(given, Sm(sm))}
    assert found[name] is reason
    assert list(found) == [t.name for t in SINGLES]


def test_every_reason_has_a_case_and_a_sentence():
    assert {reason for reason, *_ in CASES} == set(Exclusion)
    assert all(reason.sentence.endswith(".") for reason in Exclusion)


@settings(deadline=None)
@given(problems(dtypes=("float16", "float")))
def test_something_takes_every_problem_everywhere(given):
    for sm in SMS:
        legal = CATALOG.legal(given, Sm(sm))
        assert legal
        assert all(t.shared_bytes(Sm(sm)) <= DEFAULT_SHARED_BYTES for t in legal)


def test_numbers_and_names_are_unique_and_positive():
    twice = dataclasses.replace(SINGLES[0], name="other")
    for wrong in ((*SINGLES, twice), (dataclasses.replace(SINGLES[0], number=0),)):
        with pytest.raises(ValueError, match="numbers of their own"):
            Catalog(wrong)


PAIR = pair((1, 64, 14, 14), 64)

PAIR_CASES = [
    (Exclusion.SM, PAIR, 70, DEFAULT_SHARED_BYTES),
    (Exclusion.DTYPE, dataclasses.replace(PAIR, dtype="float"), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.SM_DTYPE, dataclasses.replace(PAIR, dtype="bfloat16"), 75, DEFAULT_SHARED_BYTES),
    (Exclusion.KERNEL_SIZE, pair((1, 8, 19, 19), 8, kernel=(8, 8)), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.KERNEL_SIZE, pair((1, 8, 3, 40), 8, kernel=(1, 33)), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.SHARED_MEMORY, PAIR, 80, 16 * 1024),
    (Exclusion.OFFSETS, pair((2**15, 8, 256, 256), 8), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.GRID, pair((1, 8, 9, 9), 2**24 + 4), 80, DEFAULT_SHARED_BYTES),
]


@pytest.mark.parametrize(("reason", "given", "sm", "shared"), PAIR_CASES)
def test_each_reason_against_pairs(reason, given, sm, shared):
    found = {c.tactic: c.exclusion for c in CATALOG.list(given, Sm(sm), shared)}
    assert set(found.values()) == {reason}
    assert tuple(found) == PAIRS


def test_every_pair_tactic_exists_everywhere_within_the_default_shared_memory():
    for number in SMS:
        assert CATALOG.legal(PAIR, Sm(number)) == PAIRS


def test_a_group_that_is_not_depthwise_is_refused():
    with pytest.raises(ValueError, match="not depthwise"):
        dataclasses.replace(PAIR, x=pair((1, 32, 14, 14), 64).x)


@settings(deadline=None)
@given(st.one_of(problems(dtypes=("float16", "float")), pairs()))
def test_a_grid_covers_every_output(given):
    batch, outputs, rows, columns = given.output(given.x.opt)
    for tactic in CATALOG.legal(given, Sm(80), SHARED_BYTES):
        across, down, deep = tactic.launch(given, given.x.opt).grid
        assert min(across, down, deep) >= 1
        tile = getattr(tactic, "tile", None)
        if tile is not None:
            assert (across - 1) * tile.rows < batch * rows * columns <= across * tile.rows
            assert down * tile.columns * deep >= outputs
            assert (down - 1) * tile.columns * deep < outputs
