from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.timing.accounting import account, cache_word, require_cache_problem

MAPS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(["0x1", "0x2"]))


def word(before, after, *, attached=True, rejected=False, asked=None):
    return cache_word(account(before, after, asked), attached=attached, rejected=rejected)


def test_the_four_words():
    one, two = {"a": "0x1"}, {"a": "0x1", "b": "0x1"}
    assert word({}, one, attached=False) == "cold"
    assert word({}, one) == "cold"  # an empty cache was attached
    assert word(one, one) == "hit"
    assert word(one, two) == "partial"
    assert word(one, two, asked=["b"]) == "cold"  # it held nothing that was asked for
    assert word(one, two, asked=["a", "b"]) == "partial"
    assert word({}, one, attached=False, rejected=True) == "rejected"


def test_a_changed_winner_is_no_hit():
    assert word({"a": "0x1"}, {"a": "0x2"}) == "partial"
    assert word({"a": "0x1", "b": "0x1"}, {"a": "0x1"}) == "partial"


@given(MAPS, MAPS)
def test_the_account_adds_up(before, after):
    found = account(before, after, before.keys() | after.keys())
    assert found.before - len(found.lost) + len(found.new) == found.after
    assert found.hits == found.before
    rebuilt = {k: v for k, v in before.items() if k not in found.lost}
    rebuilt |= {k: after[k] for k in found.new} | {c.key: c.after for c in found.changed}
    assert rebuilt == after


def test_what_was_asked_for_is_not_invented():
    assert account({"a": "0x1"}, {"a": "0x1"}).hits is None


@pytest.mark.parametrize("cache", ["cold", "partial", "rejected"])
def test_only_a_hit_meets_require_cache(cache):
    assert require_cache_problem("hit", "") == ""
    assert require_cache_problem(cache, "") == f"the timing cache was {cache}"
    assert require_cache_problem(cache, "torn").endswith(": torn")
