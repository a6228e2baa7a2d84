"""Shapes on the command line: parsed, printed back, refused with words."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from trtplug.errors import UsageError
from trtplug.tensor import (
    ELEMENT_TYPES,
    FLOATS,
    LARGEST_DIM,
    ShapeRange,
    TensorSpec,
    dtype_name,
    element_type,
    find_element_type,
    format_sizes,
    parse_shape_range,
)

SIZES = st.lists(st.integers(0, LARGEST_DIM), min_size=1, max_size=6).map(tuple)
NAMES = st.text(min_size=1, max_size=12)


@given(name=NAMES, low=SIZES, best=SIZES, high=SIZES)
def test_range_parses_back_whatever_the_name(name: str, low, best, high):
    chosen = ShapeRange(name=name, min=low, opt=best, max=high)
    assert parse_shape_range(str(chosen)) == chosen


@given(name=NAMES, sizes=SIZES)
def test_one_shape_is_all_three(name: str, sizes):
    chosen = parse_shape_range(f"{name}={format_sizes(sizes)}")
    assert (chosen.name, chosen.min, chosen.opt, chosen.max) == (name, sizes, sizes, sizes)


@given(pairs=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 999)), min_size=1, max_size=5))
def test_opt_between_two_shapes_never_leaves_them(pairs):
    low, high = tuple(map(min, pairs)), tuple(map(max, pairs))
    chosen = parse_shape_range(f"x={format_sizes(low)}:{format_sizes(high)}")
    assert all(a <= b <= c for a, b, c in zip(low, chosen.opt, high, strict=True))


@given(text=st.text(max_size=40))
def test_any_text_parses_or_is_refused(text: str):
    try:
        parse_shape_range(text)
    except UsageError:
        return


@pytest.mark.parametrize("name", ["a/b:0", "a=b", "images:0", " ", "x=1x3"])
def test_name_may_hold_what_separates(name: str):
    chosen = parse_shape_range(f"{name}=1x3x4")
    assert (chosen.name, chosen.opt) == (name, (1, 3, 4))


def test_scalar_and_commas():
    assert parse_shape_range("x=scalar").opt == ()
    assert parse_shape_range("x=1,3,4").opt == (1, 3, 4)
    assert format_sizes(()) == "scalar"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", "names no input"),
        ("=1x3", "names no input"),
        ("x=", "'' is no shape"),
        ("x=1x3x4.5", "'1x3x4.5' is no shape"),
        ("x=1xx3", "'1xx3' is no shape"),
        ("x=-1x3", "'-1x3' is no shape"),
        ("x=NxCx4", "'NxCx4' is no shape"),
        ("x=1x\u0663", "is no shape"),
        ("x=1x3:", "'' is no shape"),
        ("x=1:2:3:4", "has 4 shapes"),
        ("x=1x2147483648", "2147483648' is larger than 2147483647"),
        ("x=1x" + "9" * 5000, "is larger than 2147483647"),
    ],
)
def test_what_is_no_shape_is_refused_in_words(text: str, words: str):
    with pytest.raises(UsageError) as caught:
        parse_shape_range(text)
    assert words in caught.value.message
    assert len(caught.value.message) < 300


def test_many_axes_are_not_cut():
    assert len(parse_shape_range("x=" + "x".join(["1"] * 70)).min) == 70


def test_axes_that_are_no_number_are_dynamic():
    assert TensorSpec(name="x", dtype="float", shape=(1, "N")).is_dynamic
    assert TensorSpec(name="x", dtype="float", shape=(1, None)).is_dynamic
    assert not TensorSpec(name="x", dtype="float", shape=(1, 2)).is_dynamic


def test_element_types_are_those_of_onnx_and_numpy():
    for number in TensorProto.DataType.values()[1:]:
        found = element_type(number)
        assert found.name == dtype_name(number) == TensorProto.DataType.Name(number).lower()
        dtype = helper.tensor_dtype_to_np_dtype(number)
        assert not found.numpy or np.dtype(found.numpy) == dtype
        assert found.name == "string" or found.bytes == dtype.itemsize
    assert dtype_name(0) == dtype_name(999) == "undefined"


def test_an_element_type_is_found_by_each_of_its_names():
    for element in ELEMENT_TYPES:
        names = (element.name, element.word, element.word.upper(), element.layer, element.onnx)
        assert all(find_element_type(name) is element for name in names if name)
    assert find_element_type("") is None
    with pytest.raises(KeyError):
        element_type("fp17")


def test_floats_have_the_limits_of_their_formats():
    for element in FLOATS:
        info = ml_dtypes.finfo(element.numpy or element.name)
        assert element.largest == float(info.max)
        assert element.smallest_normal == float(info.smallest_normal)
        unsigned = np.array(element.nan, f"uint{element.bits}")
        assert np.isnan(unsigned.view(info.dtype))
