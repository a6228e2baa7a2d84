from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.report.words import format_bytes, format_dims, format_flops, format_share, format_us


@pytest.mark.parametrize(
    ("flops", "words"),
    [
        (None, "-"),
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (999_499, "999 k"),
        (999_500, "1.00 M"),
        (1_234_567, "1.23 M"),
        (55_296, "55.3 k"),
        (10**22, "10,000 E"),
    ],
)
def test_flops(flops: int | None, words: str) -> None:
    assert format_flops(flops) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [(None, "-"), (0, "0 B"), (768, "768 B"), (1000, "0.98 KiB"), (9_712_345, "9.26 MiB")],
)
def test_bytes(size: int | None, words: str) -> None:
    assert format_bytes(size) == words


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.004, "<0.01"),
        (0.006, "0.01"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.96, "100"),
        (1234.5, "1,234"),
    ],
)
def test_us(time: float | None, words: str) -> None:
    assert format_us(time) == words


def test_a_share_that_rounds_to_nothing_is_not_nothing() -> None:
    assert [format_share(s) for s in (None, 0.0, 1e-6, 0.117, 1.0)] == [
        "-",
        "0%",
        "<0.1%",
        "11.7%",
        "100.0%",
    ]


def test_dims() -> None:
    assert [format_dims(d) for d in ((), (1, -1), (16, 3, 3, 3))] == ["scalar", "1x?", "16x3x3x3"]


@given(st.integers(1, 10**20))
def test_figures_stay_within_half_a_percent(number: int) -> None:
    digits, _, prefix = format_flops(number).partition(" ")
    power = ("", "k", "M", "G", "T", "P", "E").index(prefix)
    assert float(digits.replace(",", "")) * 1000**power == pytest.approx(number, rel=0.0051)
