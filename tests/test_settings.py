"""Globs over names, and lists as the text of a flag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.settings import as_flag, from_flag, matches_any

ITEMS = st.lists(st.text(alphabet='a*[];, "\\=é', min_size=1), max_size=4)


@pytest.mark.parametrize(
    ("name", "glob", "found"),
    [
        ("conv1", "conv?", True),
        ("conv[0]", "conv[0]", True),
        ("conv0", "conv[0]", True),
        ("conv[0]", "conv[[]0]", True),
        ("conv1", "conv[0]", False),
        ("Conv1", "conv1", False),
        ("a=b; c", "a=b; c", True),
    ],
)
def test_a_name_is_found_as_it_is_written_and_by_glob(name: str, glob: str, found: bool):
    assert matches_any(name, ("zzz", glob)) is found


def test_plain_items_are_written_plainly():
    assert as_flag(("a*", "b")) == "a*, b"
    assert as_flag(("x=k", "y=0x1"), "; ") == "x=k; y=0x1"
    assert as_flag(("x; y=k",), "; ") == '"x; y=k"'
    assert from_flag("") == ()


@pytest.mark.parametrize("separator", [", ", "; "])
@given(items=ITEMS)
def test_no_two_lists_have_one_text(items: list[str], separator: str):
    assert from_flag(as_flag(items, separator), separator) == tuple(items)


@pytest.mark.parametrize("text", ['"a', '"a"b', '"a"; b'])
def test_other_text_is_refused(text: str):
    with pytest.raises(ValueError, match=r"no separator|Unterminated"):
        from_flag(text)
