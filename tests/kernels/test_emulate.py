"""Every tactic in the emulator: right numbers, and nothing that a GPU would hide."""

import dataclasses

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from tests.kernels.kernels import (
    SHARED_BYTES,
    SINGLES,
    assert_clean,
    checked,
    compiled,
    find_tactic,
)
from tests.kernels.problems import problem, problems
from trtplug.emulator.checks import Checks
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.emulate import random_tensors, run_tactic
from trtplug.ops.cbr import ACTIVATIONS, RESIDUALS
from trtplug.target import Sm

FAMILIES = (75, 80, 86, 87, 89, 90, 100, 120)

PARAMETERS = {
    "clip": {"min": -0.25, "max": 0.75},
    "leaky_relu": {"alpha": 0.1},
    "hard_sigmoid": {"alpha": 0.2, "beta": 0.5},
    "hard_swish": {"alpha": 1 / 6, "beta": 0.5},
}


def first_legal(given, number, tactic):
    return tactic in CATALOG.legal(given, Sm(number), SHARED_BYTES)


DENSE = problem(
    (2, 20, 9, 7), 40, least=(1, 20, 5, 5), activation="silu", residual="after_activation"
)
POINTWISE = problem((2, 72, 9, 7), 40, kernel=(1, 1), pads=(0, 0, 0, 0), strides=(2, 1),
                    least=(1, 72, 9, 7), activation="relu",
                    residual="before_activation")  # fmt: skip
STEM = problem((2, 3, 17, 19), 36, strides=(2, 2), kernel=(5, 3), pads=(2, 1, 1, 0),
               activation="sigmoid", residual="before_activation")  # fmt: skip
DEPTHWISE = problem((2, 20, 9, 11), 20, group=20, pads=(1, 0, 2, 1), strides=(1, 2), kernel=(3, 5),
                    dilations=(1, 2), activation="hard_sigmoid", alpha=0.2, beta=0.5,
                    residual="after_activation")  # fmt: skip
FLOAT = problem((2, 10, 9, 7), 15, dtype="float", group=5, activation="gelu",
                least=(1, 10, 9, 5), residual="before_activation")  # fmt: skip
SAMPLES = (DENSE, POINTWISE, STEM, DEPTHWISE, FLOAT)


def sample_for(tactic, number):
    """A problem that is hard on the tactic: tails on all sides."""
    order = (STEM, *SAMPLES) if tactic.name.startswith("stem") else SAMPLES
    return next((p for p in order if first_legal(p, number, tactic)), None)


ON_SM75 = ("igemm_128x128x32_s2", "igemm_64x32x64_s3", "pointwise_64x64x64_s2", "stem_128x64x32")


@pytest.mark.parametrize(
    ("tactic", "number"),
    [*((t, 80) for t in SINGLES), *((find_tactic(name), 75) for name in ON_SM75)],
    ids=lambda value: getattr(value, "name", value),
)
def test_each_tactic(tactic, number):
    given = sample_for(tactic, number)
    result = checked(tactic, given, number, seed=number)
    assert_clean(result, tactic.name)
    assert result.counters.shared_ratio == 1.0


@pytest.mark.parametrize("channels", [8, 32, 40, 104])
@pytest.mark.parametrize("name", ["pointwise_32x64x64_s3", "pointwise_128x64x32_s3"])
def test_fewer_steps_than_stages(name, channels):
    given = problem((1, channels, 5, 7), 24, kernel=(1, 1), pads=(0, 0, 0, 0))
    assert_clean(checked(find_tactic(name), given, 80, seed=channels), name)


@pytest.mark.parametrize("number", FAMILIES)
def test_each_sm_family(number):
    assert_clean(checked(find_tactic("igemm_64x32x64_s3"), DENSE, number, seed=1), number)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_each_activation(activation, dtype):
    given = problem((1, 8, 6, 6), 12, dtype=dtype, activation=activation,
                    residual="before_activation", **PARAMETERS.get(activation, {}))  # fmt: skip
    name = "direct_linear" if dtype == "float" else "igemm_32x64x64_s3"
    assert_clean(checked(find_tactic(name), given, 80, seed=2), activation)


def test_gelu_by_tanh():
    given = problem((1, 8, 6, 6), 8, dtype="float", activation="gelu", alpha=1.0)
    assert_clean(checked(find_tactic("direct_linear"), given, 80), "gelu")


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("name", ["igemm_64x64x64_s2", "depthwise_2", "direct_hwc8"])
def test_each_residual(residual, name):
    group = 12 if name == "depthwise_2" else 1
    given = problem((1, 12, 7, 5), 12, group=group, activation="tanh", residual=residual)
    assert_clean(checked(find_tactic(name), given, 80, seed=3), residual)


@pytest.mark.parametrize("name", ["igemm_64x64x64_s2", "stem_128x32x32", "depthwise_1"])
def test_bf16(name):
    given = DEPTHWISE if name.startswith("depth") else STEM
    given = dataclasses.replace(given, dtype="bfloat16")
    assert_clean(checked(find_tactic(name), given, 80, seed=4), name)


@pytest.mark.parametrize("channels", [60, 63, 64, 65])
@pytest.mark.parametrize("taps", [1, 3])
def test_padding_lanes_are_not_trusted(channels, taps):
    """Poisoned with NaN: once the last chunk of a tile's whole row of them was taken as it was."""
    given = problem((1, channels, 5, 5), 9, kernel=(taps, taps), pads=(taps // 2,) * 4)
    name = "igemm_64x64x64_s2" if taps > 1 else "pointwise_64x64x64_s2"
    for number in (75, 80):
        assert_clean(checked(find_tactic(name), given, number, seed=channels), channels)


@pytest.mark.parametrize("sizes", [(1, 20, 5, 5), (2, 20, 8, 6), (2, 20, 9, 7)])
def test_one_kernel_serves_all_sizes_of_its_range(sizes):
    assert DENSE.dynamic == ("batch", "height", "width")
    for name in ("igemm_64x64x32_s4", "direct_hwc8"):
        assert_clean(checked(find_tactic(name), DENSE, 80, seed=5, sizes=sizes), sizes)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    problems(dtypes=("float16", "float16", "bfloat16", "float")),
    st.sampled_from(FAMILIES),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_whatever_is_called_legal_is_right(given, number, seed, largest, random):
    """Many more of these: scripts/fuzz_kernels."""
    legal = CATALOG.legal(given, Sm(number), SHARED_BYTES)
    assert legal or given.dtype == "bfloat16"
    sizes = given.x.max if largest else given.x.opt
    for tactic in random.sample(legal, min(2, len(legal))):
        result = checked(tactic, given, number, seed, sizes=sizes)
        assert_clean(result, (tactic.name, number, sizes, given))


def test_the_problems_drawn_reach_every_tactic():
    reached = set()

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @hypothesis_given(problems(dtypes=("float16", "float")))
    def draw(one):
        reached.update(t.name for t in CATALOG.legal(one, Sm(80), SHARED_BYTES))

    draw()
    assert reached == {t.name for t in SINGLES}


def test_a_sample_of_blocks_checks_what_they_write():
    given = problem((1, 16, 40, 40), 64)
    result = checked(find_tactic("igemm_64x64x64_s2"), given, 80, blocks=(0, 7, 24))
    assert_clean(result, "sample")
    assert (result.blocks, result.grid_blocks) == (3, 25)


@pytest.mark.parametrize("checks", [Checks(), Checks(memory=False)])
def test_padding_lanes_of_blocks_that_were_not_run_are_no_fault(checks):
    given = problem((1, 96, 16, 16), 12, kernel=(1, 1), pads=(0, 0, 0, 0))
    tactic = find_tactic("pointwise_32x64x64_s3")
    assert_clean(checked(tactic, given, 80, blocks=(0, 3, 7), checks=checks), "sample")


def wrong(ptx, old, new):
    assert old in ptx
    return ptx.replace(old, new, 1)


def test_wrong_numbers_are_said():
    tactic = find_tactic("igemm_32x64x64_s3")
    tensors = random_tensors(DENSE, DENSE.x.opt, np.random.default_rng(0))
    ptx = wrong(compiled(tactic, DENSE, 80).ptx, "ex2.approx.ftz.f32", "abs.f32")
    result = run_tactic(tactic, DENSE, ptx, tensors)
    assert not result.passed
    assert "relative error" in result.problems[0]


def test_a_missing_barrier_is_said():
    tactic = find_tactic("igemm_32x64x64_s3")
    tensors = random_tensors(DENSE, DENSE.x.opt, np.random.default_rng(0))
    ptx = compiled(tactic, DENSE, 80).ptx
    barrier = next(line for line in ptx.splitlines(keepends=True) if "bar.sync" in line)
    result = run_tactic(tactic, DENSE, wrong(ptx, barrier, "\n"), tensors)
    assert any(f.kind in ("race", "unfinished_copy", "uninitialised") for f in result.findings)
