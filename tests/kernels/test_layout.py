"""Tensors as a GPU holds them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trtplug.kernels.layout import from_bits, from_device, padding_lanes, to_bits, to_device

SHAPES = arrays.array_shapes(min_dims=4, max_dims=4, max_side=9)
DTYPES = st.sampled_from(("float", "float16", "bfloat16"))


@given(SHAPES, DTYPES, st.sampled_from(("LINEAR", "HWC8")))
def test_what_goes_to_the_device_comes_back(shape, dtype, layout):
    values = np.arange(np.prod(shape)).reshape(shape) % 128
    assert np.array_equal(
        from_device(to_device(values, dtype, layout), dtype, layout, shape), values
    )


def test_hwc8_has_channels_innermost_and_nan_after_them():
    values = np.arange(2 * 3 * 1 * 2).reshape(2, 3, 1, 2)
    bits = to_device(values, "float16", "HWC8")
    assert bits.shape == (2 * 1 * 2 * 8,)
    assert list(from_bits(bits[:3], "float16")) == [0, 2, 4]
    assert np.isnan(from_bits(padding_lanes(bits, (2, 3, 1, 2)), "float16")).all()
    assert padding_lanes(bits, (2, 8, 1, 2)).size == 0


# By hand: BF16 keeps 8 bits, so 257 lies between 256 and 258, and 259 between 258 and 260.
@pytest.mark.parametrize(("value", "rounded"), [(257.0, 256.0), (259.0, 260.0), (-1.0, -1.0)])
def test_bf16_rounds_to_nearest_even(value, rounded):
    assert from_bits(to_bits(np.array([value]), "bfloat16"), "bfloat16")[0] == rounded


@pytest.mark.parametrize("dtype", ["float", "float16", "bfloat16"])
def test_nan_stays_nan(dtype):
    assert np.isnan(from_bits(to_bits(np.array([np.nan]), dtype), dtype)).all()
