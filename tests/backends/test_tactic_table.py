from __future__ import annotations

import dataclasses

import pytest

from tests.backends.trt.tactic_logs import table
from trtplug.backends.tactic_table import with_winner


def test_the_margin_is_that_to_the_fastest_other():
    found = table("a", [0.02, 0.01, 0.03])
    assert found.runner_up.cost_ms == 0.02
    assert found.margin == pytest.approx(1.0)
    assert found.near_tie is False


def test_a_pinned_slower_tactic_has_a_negative_margin():
    found = table("a", [0.010, 0.020], chosen=1)
    assert found.margin == pytest.approx(-0.5)
    assert found.near_tie is True


@pytest.mark.parametrize(("second", "near"), [(0.0104, True), (0.0106, False)])
def test_near_ties_are_within_five_percent(second, near):
    assert table("a", [0.01, second]).near_tie is near


def test_what_is_not_known_stays_unknown():
    assert table("a", [0.01]).margin is None
    assert table("a", [0.01]).near_tie is None
    unselected = dataclasses.replace(table("a", [0.01, 0.02]), selected=None)
    assert (unselected.chosen, unselected.runner_up, unselected.margin) == (None, None, None)
    free = table("a", [0.0, 0.02])
    assert free.margin is None


def test_another_winner_in_the_same_table():
    found = table("a", [0.010, 0.020])
    slow = found.candidates[1]
    pinned = with_winner(found, slow.tactic_hash)
    assert pinned.chosen == slow
    assert pinned.selected_ms == 0.020
    assert pinned.margin == pytest.approx(-0.5)
    assert with_winner(found, found.selected) is found
    assert with_winner(found, None) is found
    unknown = with_winner(found, "0x77")
    assert (unknown.chosen, unknown.selected_ms, unknown.margin) == (None, None, None)
