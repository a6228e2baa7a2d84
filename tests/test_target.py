"""Targets: one string form, used everywhere, that parses back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.errors import UsageError
from trtplug.target import Sm, Target, parse_sm, parse_target

TARGETS = st.builds(
    Target,
    backend=st.sampled_from(["rtx", "trt", "null"]),
    version=st.lists(st.integers(0, 99), min_size=1, max_size=3).map(
        lambda p: ".".join(map(str, p))
    ),
    sm=st.integers(10, 999).map(Sm),
)


@given(TARGETS)
def test_target_parses_back(target: Target):
    assert parse_target(str(target)) == target


@given(TARGETS)
def test_file_part_is_safe_in_any_shell_and_system(target: Target):
    assert not set(target.file_part) & set(":/\\ *?\"'<>|$")


@pytest.mark.parametrize(
    "text", ["", "rtx", "rtx-1.7", "rtx-1.7:89", "rtx:sm_89", "RTX-1.7:sm_89 "]
)
def test_other_text_is_refused(text: str):
    with pytest.raises(UsageError, match="is not a target"):
        parse_target(text)


@pytest.mark.parametrize("text", ["sm_89", "sm89", "SM89", " Sm_89 "])
def test_sm_in_each_spelling(text: str):
    sm = parse_sm(text)
    assert sm == Sm(89)
    assert (str(sm), sm.major, sm.minor) == ("sm_89", 8, 9)


@pytest.mark.parametrize("text", ["", "89", "sm_", "sm_9", "sm_8900", "sm_8 9", "sm_-89", "sm_90a"])
def test_no_sm(text: str):
    assert parse_sm(text) is None


def test_three_digits_split_before_the_last():
    assert (Sm(120).major, Sm(120).minor) == (12, 0)
