from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.report.words import NO_NAME, elide, visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("p2o.Conv.0", "p2o.Conv.0"),
        ("卷积 é", "卷积 é"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("zero\u200bwidth", r"zero\u200bwidth"),
        ("lone \ud800", r"lone \ud800"),
        ("", NO_NAME),
    ],
)
def test_visible_shows_what_is_there(name: str, shown: str) -> None:
    assert visible(name) == shown


@given(st.text(st.characters()))
def test_visible_leaves_nothing_that_steers_a_terminal_or_a_line(name: str) -> None:
    shown = visible(name)
    assert shown
    assert all(unicodedata.category(c)[0] != "C" for c in shown)
    assert len(shown.splitlines()) == 1
    assert shown.encode("utf-8")


@given(st.text(), st.integers(0, 40))
def test_elide_keeps_both_ends_within_the_width(name: str, width: int) -> None:
    short = elide(name, width)
    assert len(short) == min(len(name), width)
    if len(name) > width >= 3:
        head, tail = short.split("…", 1) if "…" not in name else (short[:1], short[-1:])
        assert name.startswith(head)
        assert name.endswith(tail)
