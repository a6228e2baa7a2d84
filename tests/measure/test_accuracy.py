"""Distances between outputs: what they say, and what they must not hide."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trtplug.measure.accuracy import compare_outputs


def compare(a, b):
    (found,) = compare_outputs({"y": np.asarray(a)}, {"y": np.asarray(b)})
    return found


def test_the_difference_is_relative_to_the_largest_value_but_never_below_one():
    found = compare([0.0, 100.0], [0.5, 100.0])
    assert (found.max_abs, found.max_relative) == (0.5, 0.005)
    assert compare([0.0, 0.1], [0.05, 0.1]).max_relative == 0.05


@pytest.mark.parametrize(
    ("one", "two", "problem"),
    [
        ({"y": np.zeros(2)}, {}, "it is missing"),
        ({}, {"y": np.zeros(2)}, "the reference has no such output"),
        ({"y": np.zeros(2)}, {"y": np.zeros(3)}, "its shape is [3], the reference's [2]"),
        (
            {"y": np.zeros(2, np.float32)},
            {"y": np.zeros(2, np.float16)},
            "its type is float16, the reference's float32",
        ),
    ],
)
def test_what_cannot_be_compared_is_never_close(one, two, problem):
    (found,) = compare_outputs(one, two)
    assert found.problem == problem
    assert not found.within(1e9)
    assert not found.alike(-1)


@pytest.mark.parametrize(
    ("one", "two", "lost"),
    [
        ([1.0, 2.0], [1.0, np.nan], 1),
        ([1.0, np.inf], [1.0, np.inf], 0),
        ([1.0, np.inf], [1.0, -np.inf], 1),
        ([1.0, np.nan], [1.0, np.nan], 0),
        ([1.0, np.nan], [1.0, 5.0], 1),
    ],
)
def test_values_that_are_no_numbers(one, two, lost):
    found = compare(one, two)
    assert found.new_nonfinite == lost
    assert found.within(0.0) == (lost == 0)


def test_cosine():
    assert compare([0.0, 0.0], [0.0, 0.0]).cosine == 1.0
    assert compare([1.0, 0.0], [0.0, 1.0]).cosine == 0.0
    assert compare([3.0, 4.0], [-6.0, -8.0]).cosine == pytest.approx(-1)
    assert compare([1e200, 2e200], [1e200, 2e200]).cosine == pytest.approx(1)
    assert compare(np.zeros(0), np.zeros(0)).within(0)


@given(arrays(np.float32, 7, elements=st.floats(-1e3, 1e3, width=32)))
def test_anything_equals_itself(values):
    found = compare(values, values.copy())
    assert found.within(0.0)
    assert found.alike(0.999999)
