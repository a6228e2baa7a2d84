from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trtplug.report.text import share_out


def test_what_a_short_name_leaves_the_long_ones_get() -> None:
    assert share_out([4, 30, 30], 44) == [4, 20, 20]
    assert share_out([30, 4, 12], 44) == [28, 4, 12]
    assert share_out([5, 5], 44) == [5, 5]
    assert share_out([], 44) == []


@given(st.lists(st.integers(1, 600), min_size=1, max_size=6), st.integers(0, 200))
def test_names_never_get_more_than_they_want_nor_more_than_there_is(wanted, room) -> None:
    given_ = share_out(wanted, room)
    assert all(g <= w for g, w in zip(given_, wanted, strict=True))
    assert all(g >= min(w, 8) for g, w in zip(given_, wanted, strict=True))
    assert sum(given_) <= max(room, sum(min(w, 8) for w in wanted))
    if room >= sum(wanted):
        assert given_ == wanted
