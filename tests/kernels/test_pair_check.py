"""Every pair tactic in the emulator: right numbers, and nothing that a GPU would hide."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.kernels import PAIRS, assert_clean, checked, compiled, find_tactic
from tests.kernels.pair_problems import pair, pairs
from tests.kernels.test_emulate import FAMILIES, PARAMETERS
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.emulate import random_tensors, run_tactic
from trtplug.ops.cbr import ACTIVATIONS, RESIDUALS
from trtplug.target import Sm

SILU = {"activation": "silu"}
# Tails on all sides: pixels, channels between, outputs, and several steps in depth.
HARD = pair((2, 75, 9, 11), 70, kernel=(3, 5), strides=(1, 2), pads=(1, 0, 2, 1), dilations=(1, 2),
            first=SILU, second={"activation": "relu"}, residual="before_activation",
            least=(1, 75, 6, 9))  # fmt: skip
# 16 bytes beside each other are all that a lane reads: here nothing is fetched in vain.
EVEN = pair((1, 96, 14, 14), 24)


@pytest.mark.parametrize("number", [75, 80])
@pytest.mark.parametrize("tactic", PAIRS, ids=lambda t: t.name)
def test_each_tactic(tactic, number):
    result = checked(tactic, HARD, number, seed=number)
    assert_clean(result, tactic.name)
    assert result.counters.shared_ratio == 1.0


@pytest.mark.parametrize("number", FAMILIES)
def test_each_sm_family(number):
    assert_clean(checked(find_tactic("pair_32x64x64"), HARD, number, seed=1), number)


@pytest.mark.parametrize("tactic", PAIRS, ids=lambda t: t.name)
def test_memory_is_read_and_written_without_waste(tactic):
    counters = checked(tactic, EVEN, 80).counters
    assert (counters.shared_ratio, counters.global_ratio) == (1.0, 1.0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_each_activation_at_both_places(activation):
    one = {"activation": activation, **PARAMETERS.get(activation, {})}
    given = pair((1, 12, 6, 6), 12, first=one, second=one)
    assert_clean(checked(find_tactic("pair_32x64x64"), given, 80, seed=2), activation)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("number", [75, 80])
def test_each_residual(residual, number):
    given = pair((1, 20, 7, 5), 20, second={"activation": "tanh"}, residual=residual)
    assert_clean(checked(find_tactic("pair_128x64x32"), given, number, seed=3), residual)


@pytest.mark.parametrize("channels", [1, 7, 8, 31, 32, 33, 64, 65])
def test_padding_lanes_are_not_trusted(channels):
    for name in ("pair_64x256x32", "pair_64x32x64"):
        given = pair((1, channels, 5, 5), 9)
        assert_clean(checked(find_tactic(name), given, 80, seed=channels), (name, channels))


def test_bf16():
    given = dataclasses.replace(HARD, dtype="bfloat16")
    assert_clean(checked(find_tactic("pair_64x128x32"), given, 80, seed=4), "bf16")


@pytest.mark.parametrize("sizes", [(1, 75, 6, 9), (2, 75, 8, 10), (2, 75, 9, 11)])
def test_one_kernel_serves_all_sizes_of_its_range(sizes):
    assert HARD.dynamic == ("batch", "height", "width")
    assert_clean(checked(find_tactic("pair_64x32x64"), HARD, 80, seed=5, sizes=sizes), sizes)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    pairs(dtypes=("float16", "float16", "bfloat16")),
    st.sampled_from(FAMILIES),
    st.integers(0, 2**32 - 1),
    st.sampled_from(PAIRS),
)
def test_whatever_is_called_legal_is_right(given, number, seed, tactic):
    legal = CATALOG.legal(given, Sm(number))
    height, width = given.attributes.depthwise.kernel_shape
    none = (given.dtype, number) == ("bfloat16", 75) or width > 32 or height * width > 56
    assert legal == (() if none else PAIRS)
    if legal:
        assert_clean(checked(tactic, given, number, seed), (tactic.name, number, given))


def test_a_sample_of_blocks_checks_what_they_write():
    given = pair((1, 16, 40, 40), 300)
    result = checked(find_tactic("pair_64x256x32"), given, 80, blocks=(0, 7, 49))
    assert_clean(result, "sample")
    assert (result.blocks, result.grid_blocks) == (3, 50)


def test_wrong_numbers_are_said():
    tactic = find_tactic("pair_32x64x64")
    tensors = random_tensors(HARD, HARD.x.opt, np.random.default_rng(0))
    ptx = compiled(tactic, HARD, 80).ptx
    assert "ex2.approx.ftz.f32" in ptx
    result = run_tactic(tactic, HARD, ptx.replace("ex2.approx.ftz.f32", "abs.f32", 1), tensors)
    assert "relative error" in result.problems[0]
