"""Bits of registers as numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.single import few
from trtplug.emulator.values import (
    S8,
    S64,
    U16,
    U32,
    bf16_to_f32,
    constant,
    f32_to_bf16,
    f32_to_tf32,
    read_as,
    widened,
)


@few
@given(st.lists(st.integers(0, 2**32 - 1), min_size=50))
def test_bf16_rounds_to_even(bits: list[int]) -> None:
    x = np.array(bits, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        want = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(bf16_to_f32(f32_to_bf16(x)), want, equal_nan=True)


def test_tf32_keeps_10_bits() -> None:
    x = np.array([1 + 2**-11, 1 + 2**-12, -(1 + 2**-11), np.inf, np.nan], np.float32)
    want = np.array([1 + 2**-10, 1, -(1 + 2**-10), np.inf, np.nan], np.float32)
    assert np.array_equal(f32_to_tf32(x), want, equal_nan=True)


def test_a_wide_register_gives_its_low_bits() -> None:
    assert read_as(constant(0x12345680, 4), U16).tolist() == [[0x5680]]
    assert read_as(constant(0x12345680, 4), S8).tolist() == [[-128]]
    assert read_as(constant(7, 4).view(np.float32), U32).tolist() == [[7]]


def test_signs_are_extended() -> None:
    assert widened(np.array([[-1]], np.int8), 4).tolist() == [[-1]]
    assert widened(np.array([[255]], np.uint8), 8).tolist() == [[255]]
    assert widened(np.array([[-1]], np.int64), 8).dtype == S64
