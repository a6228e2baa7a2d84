"""The roofline: each term, the largest of them, and what is not known."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.profile import DensePeak, GpuProfile
from trtplug.report.bounds import Work, bound_us, matrix_peak
from trtplug.target import Sm

GPU = GpuProfile(
    name="test",
    gpu="Test",
    sm=Sm(89),
    architecture="Test",
    memory_bandwidth_bytes_per_s=10**12,
    dense_peak=DensePeak(
        fp32_flops_per_s=80e12,
        tf32_flops_per_s=160e12,
        fp16_flops_per_s=160e12,
        fp16_accumulate_fp16_flops_per_s=320e12,
    ),
)


def work(**values):
    given = {"matrix_flops": 0, "vector_flops": 0, "bytes": 0, "dtype": "Float", **values}
    return Work(**given)


@pytest.mark.parametrize(
    ("values", "tf32", "bound", "by"),
    [
        ({"bytes": 10**6}, True, 1.0, "memory"),
        ({"matrix_flops": 160 * 10**6}, True, 1.0, "matrix"),
        ({"matrix_flops": 160 * 10**6}, False, 2.0, "matrix"),
        ({"matrix_flops": 320 * 10**6, "dtype": "Half"}, True, 1.0, "matrix"),
        ({"vector_flops": 80 * 10**6}, True, 1.0, "vector"),
        ({"vector_flops": 80 * 10**6, "bytes": 3 * 10**6}, True, 3.0, "memory"),
        # A peak that is not known is left out: what remains is still a lower bound.
        ({"matrix_flops": 10**12, "bytes": 10**6, "dtype": "Int8"}, True, 1.0, "memory"),
    ],
)
def test_bound(values, tf32, bound, by):
    assert bound_us(work(**values), GPU, tf32=tf32) == (pytest.approx(bound), by)


def test_nothing_known_is_no_bound():
    blank = dataclasses.replace(GPU, memory_bandwidth_bytes_per_s=None, dense_peak=DensePeak())
    assert bound_us(work(bytes=5, matrix_flops=5), blank, tf32=True) is None
    assert bound_us(Work(matrix_flops=None, vector_flops=None, bytes=None, dtype=""), GPU,
                    tf32=True) is None  # fmt: skip
    assert matrix_peak("Half", blank, tf32=True) is None


@given(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(0, 10**12))
def test_more_work_never_lowers_the_bound(matrix, vector, size):
    small = bound_us(work(matrix_flops=matrix, vector_flops=vector, bytes=size), GPU, tf32=True)
    large = bound_us(
        work(matrix_flops=matrix * 2, vector_flops=vector * 2, bytes=size * 2), GPU, tf32=True
    )
    assert small is not None
    assert large is not None
    assert large[0] == pytest.approx(2 * small[0])
