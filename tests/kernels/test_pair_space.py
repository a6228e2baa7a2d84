"""Which pair tactics are legal, and why the others are not."""

import dataclasses

import pytest
from hypothesis import given, settings

from tests.kernels.pair_legal import legal_pair_tactics
from tests.kernels.pair_problems import pair, pairs
from trtplug.kernels.catalog import TACTICS
from trtplug.kernels.pair_catalog import PAIR_TACTICS
from trtplug.kernels.pair_launch import launch_pair
from trtplug.kernels.pair_space import list_pair_tactics
from trtplug.kernels.space import DEFAULT_SHARED_BYTES, Exclusion
from trtplug.kernels.usage import LIMITS
from trtplug.target import Sm

GOOD = pair((1, 64, 14, 14), 64)

CASES = [
    (Exclusion.SM, GOOD, 70, DEFAULT_SHARED_BYTES),
    (Exclusion.DTYPE, dataclasses.replace(GOOD, dtype="float"), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.SM_DTYPE, dataclasses.replace(GOOD, dtype="bfloat16"), 75, DEFAULT_SHARED_BYTES),
    (Exclusion.KERNEL_SIZE, pair((1, 8, 19, 19), 8, kernel=(8, 8)), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.SHARED_MEMORY, GOOD, 80, 16 * 1024),
    (Exclusion.OFFSETS, pair((2**15, 8, 256, 256), 8), 80, DEFAULT_SHARED_BYTES),
    (Exclusion.GRID, pair((1, 8, 9, 9), 2**24 + 4), 80, DEFAULT_SHARED_BYTES),
]


@pytest.mark.parametrize(("reason", "given", "sm", "shared"), CASES)
def test_each_reason(reason, given, sm, shared):
    found = {c.tactic.name: c.exclusion for c in list_pair_tactics(given, Sm(sm), shared)}
    assert set(found.values()) == {reason}
    assert list(found) == [t.name for t in PAIR_TACTICS]


def test_every_tactic_exists_everywhere_within_the_default_shared_memory():
    for number in LIMITS:
        assert legal_pair_tactics(GOOD, Sm(number)) == PAIR_TACTICS


def test_numbers_and_names_are_given_once():
    every = (*TACTICS, *PAIR_TACTICS)
    assert len({t.number for t in every}) == len({t.name for t in every}) == len(every)


def test_a_group_that_is_not_depthwise_is_refused():
    with pytest.raises(ValueError, match="not depthwise"):
        dataclasses.replace(GOOD, x=pair((1, 32, 14, 14), 64).x)


@settings(deadline=None)
@given(pairs())
def test_a_grid_covers_every_output(given):
    batch, outputs, rows, columns = given.output(given.x.opt)
    for tactic in PAIR_TACTICS:
        across, down, deep = launch_pair(tactic, given, given.x.opt).grid
        pixels = batch * rows * columns
        assert (across - 1) * tactic.tile.rows < pixels <= across * tactic.tile.rows
        assert (down - 1) * tactic.tile.columns < outputs <= down * tactic.tile.columns
        assert deep == 1
