"""Sizes on the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.cli.options import parse_bytes
from trtplug.errors import UsageError


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1000000", 1_000_000),
        ("512M", 512 << 20),
        ("4GiB", 4 << 30),
        ("4gb", 4 << 30),
        ("1.5 G", 3 << 29),
        ("8B", 8),
        (" 2T ", 2 << 40),
    ],
)
def test_size(text: str, size: int):
    assert parse_bytes(text, "--workspace") == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1e9", "1 PB", "nan", "0x10", "1,5G", "1GiBs"])
def test_no_size(text: str):
    with pytest.raises(UsageError, match=r"--workspace .* (is not a size|has an unknown unit)"):
        parse_bytes(text, "--workspace")


def test_an_unknown_unit_lists_the_units():
    with pytest.raises(UsageError) as caught:
        parse_bytes("1 PB", "--workspace")
    assert caught.value.message == "--workspace '1 PB' has an unknown unit 'PB'"
    assert caught.value.hint == "units are B, KiB, MiB, GiB and TiB"


@pytest.mark.parametrize("text", ["0", "0.5", "8388608T", "9" * 400, "9" * 20 + "T"])
def test_size_that_no_builder_takes(text: str):
    with pytest.raises(UsageError, match="is not between 1 byte and 8 EiB"):
        parse_bytes(text, "--workspace")


@given(st.text(max_size=30))
def test_any_text_is_a_size_or_refused(text: str):
    try:
        assert 1 <= parse_bytes(text, "--x") < 2**63
    except UsageError:
        return
