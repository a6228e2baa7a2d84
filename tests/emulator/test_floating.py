"""Floating-point instructions against NumPy's correctly rounded ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.emulator.single import compute, few

EDGES = [0.0, -0.0, 1.0, -1.5, 65504.0, 1e-8, -3e-5, 3.4e38, np.inf, -np.inf, np.nan]
numbers = hnp.arrays(
    np.float32,
    st.integers(8, 40),
    elements=st.one_of(st.sampled_from(EDGES), st.floats(width=32, allow_nan=False)),
)


def same(got: np.ndarray, want: np.ndarray) -> bool:
    """Equal bits, all NaN alike."""
    return np.array_equal(got, want, equal_nan=True)


@pytest.mark.parametrize("opcode", ["add", "sub", "mul", "div.rn", "min", "max"])
@few
@given(x=numbers, seed=st.integers(0, 99))
def test_fp32(opcode: str, x: np.ndarray, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(x)
    functions = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div.rn": np.divide,
        "min": np.fmin,
        "max": np.fmax,
    }
    with np.errstate(all="ignore"):
        want = functions[opcode](x, y)
    assert same(compute(f"{opcode}.f32 %d, %a0, %a1;", [x, y], np.float32), want)


def test_fma_rounds_once() -> None:
    x = np.array([1 + 2**-23, 3.0], np.float32)
    c = -(x * x)
    exact = (x.astype(np.float64) ** 2 + c).astype(np.float32)
    assert exact[0] != 0
    assert same(compute("fma.rn.f32 %d, %a0, %a0, %a1;", [x, c], np.float32), exact)


@pytest.mark.parametrize(("mode", "want"), [("rz", 0), ("rm", -1), ("rp", 1)])
def test_directed_rounding(mode: str, want: int) -> None:
    one, tiny = np.ones(1, np.float32), np.full(1, 2.0**-30, np.float32)
    up = compute(f"add.{mode}.f32 %d, %a0, %a1;", [one, tiny], np.float32)[0]
    down = compute(f"sub.{mode}.f32 %d, %a0, %a1;", [one, tiny], np.float32)[0]
    above, below = np.nextafter(np.float32(1), np.float32([2, 0]))
    assert up == (above if want > 0 else 1)
    assert down == (below if want <= 0 else 1)


@pytest.mark.parametrize("opcode", ["add", "mul", "fma.rn"])
@few
@given(x=numbers)
def test_packed_fp16(opcode: str, x: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        a = np.stack([x, -x], axis=1).astype(np.float16)
        b = np.stack([x[::-1], x], axis=1).astype(np.float16)
        wide = a.astype(np.float64), b.astype(np.float64)
        want = (
            {
                "add": wide[0] + wide[1],
                "mul": wide[0] * wide[1],
                "fma.rn": wide[0] * wide[1] + wide[0],
            }[opcode]
            .astype(np.float32)
            .astype(np.float16)
        )
    bits = [v.copy().view(np.uint32).ravel() for v in (a, b)]
    operands = "%a0, %a1, %a0" if opcode == "fma.rn" else "%a0, %a1"
    got = compute(f"{opcode}.f16x2 %d, {operands};", bits, np.uint32)
    assert same(got.view(np.float16).reshape(-1, 2), want)


@few
@given(x=numbers)
def test_conversions(x: np.ndarray) -> None:
    import ml_dtypes

    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
        brain = x.astype(ml_dtypes.bfloat16)
    got = compute("cvt.rn.f16.f32 %d, %a0;", [x], np.uint16).view(np.float16)
    assert same(got, half)
    assert same(compute("cvt.f32.f16 %d, %a0;", [half], np.float32), half.astype(np.float32))
    bits = compute("cvt.rn.bf16.f32 %d, %a0;", [x], np.uint16).view(ml_dtypes.bfloat16)
    assert same(bits.astype(np.float32), brain.astype(np.float32))
    pair = compute("cvt.rn.f16x2.f32 %d, %a0, %a1;", [x, -x], np.uint32)
    assert same(pair.view(np.float16).reshape(-1, 2), np.stack([-half, half], axis=1))
    finite = np.nan_to_num(x, nan=0.0)
    whole = np.clip(np.trunc(finite.astype(np.float64)), -(2**31), 2**31 - 1)
    assert compute("cvt.rzi.s32.f32 %d, %a0;", [x], np.int32).tolist() == whole.tolist()


def test_integers_to_floats_and_back() -> None:
    x = np.array([0, 1, -1, 2**24 + 1, -(2**31), 2**31 - 1], np.int32)
    assert same(compute("cvt.rn.f32.s32 %d, %a0;", [x], np.float32), x.astype(np.float32))
    assert compute("cvt.s64.s32 %d, %a0;", [x], np.int64).tolist() == x.tolist()
    assert compute("cvt.u64.u32 %d, %a0;", [x], np.uint64).tolist() == x.view(np.uint32).tolist()
    low = compute("cvt.s16.s32 %d, %a0;", [x], np.int16)
    assert low.tolist() == x.astype(np.int16).tolist()
    byte = compute("cvt.sat.u8.s32 %d, %a0;", [x], np.uint16)
    assert byte.tolist() == np.clip(x, 0, 255).tolist()


@pytest.mark.parametrize("name", ["ex2", "lg2", "rcp", "rsqrt", "sqrt", "tanh", "sin", "cos"])
def test_approximate_functions(name: str) -> None:
    x = np.linspace(0.1, 4, 50, dtype=np.float32)
    functions = {
        "ex2": np.exp2,
        "lg2": np.log2,
        "rcp": np.reciprocal,
        "rsqrt": lambda v: 1 / np.sqrt(v),
    }
    function = functions.get(name) or getattr(np, name)
    got = compute(f"{name}.approx.f32 %d, %a0;", [x], np.float32)
    assert np.allclose(got, function(x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"])
def test_comparisons_know_nan(name: str) -> None:
    x = np.array([1, 2, 2, np.nan, 1, np.nan], np.float32)
    y = np.array([2, 1, 2, 1, np.nan, np.nan], np.float32)
    lost = np.isnan(x) | np.isnan(y)
    plain = {"eq": x == y, "ne": x != y, "lt": x < y, "ge": x >= y, "num": ~lost, "nan": lost}
    want = plain[name] & ~lost if name in ("eq", "ne", "lt", "ge") else plain.get(name)
    if want is None:
        want = plain[name[:-1] if name != "neu" else "ne"] | lost
    got = compute(f"setp.{name}.f32 %p1, %a0, %a1;\nselp.u32 %d, 1, 0, %p1;", [x, y], np.uint32)
    assert got.tolist() == want.astype(int).tolist()


def test_flags() -> None:
    x = np.array([-0.5, 0.25, 7.0, np.nan, 1e-40], np.float32)
    assert same(
        compute("cvt.sat.f32.f32 %d, %a0;", [x], np.float32),
        np.array([0, 0.25, 1, 0, 1e-40], np.float32),
    )
    assert compute("add.ftz.f32 %d, %a0, %a0;", [x], np.float32)[4] == 0
    assert same(
        compute("cvt.rn.relu.f16x2.f32 %d, %a0, %a0;", [x], np.uint32).view(np.float16)[::2][:3],
        np.array([0, 0.25, 7], np.float16),
    )
    assert compute("copysign.f32 %d, %a0, 0f40000000;", [x], np.float32)[0] == -2
