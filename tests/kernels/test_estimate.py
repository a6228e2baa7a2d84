"""Predictions: their terms move as the model says."""

import dataclasses

import pytest

from tests.kernels.problems import problem
from trtplug.kernels.catalog import TACTICS, find_tactic
from trtplug.kernels.estimate import START_US, predict
from trtplug.kernels.usage import Usage
from trtplug.profile import find_profile, load_profiles
from trtplug.settings import resource_folder

USAGE = Usage(registers=128, shared_bytes=32768, stack_bytes=0, spill_bytes=0)
DEEP = problem((8, 512, 28, 28), 512)


@pytest.fixture(scope="module")
def gpus():
    profiles = load_profiles((resource_folder("profiles"),))
    return {name: find_profile(name, profiles) for name in ("h200", "a100-80gb", "l4")}


@pytest.fixture(scope="module")
def h200(gpus):
    return gpus["h200"]


def predicted(name, given, profile, usage=USAGE):
    return predict(find_tactic(name), given, profile, usage, given.x.opt)


def test_a_deep_layer_is_bound_by_its_products(gpus):
    found = predicted("igemm_128x128x32_s2", DEEP, gpus["a100-80gb"])
    assert found.bound_by == "tensor"
    # 2 * 6272 * 512 * 4608 operations at 80 % of 312 Tflop/s are 118.6 us; its 196 blocks lie on
    # 108 SMs as two on the fullest: 216 / 196 of that.
    assert found.predicted_us == pytest.approx(START_US + 118.6 * 216 / 196, rel=0.01)


def test_a_thin_layer_is_bound_by_memory(gpus):
    thin = problem((8, 64, 112, 112), 64, kernel=(1, 1), pads=(0, 0, 0, 0))
    assert predicted("pointwise_128x64x32_s3", thin, gpus["l4"]).bound_by == "memory"


def test_a_small_map_prefers_small_tiles(h200):
    small = problem((1, 512, 7, 7), 512)
    fine = predicted("igemm_32x64x64_s3", small, h200)
    coarse = predicted("igemm_128x128x32_s2", small, h200)
    assert fine.predicted_us < coarse.predicted_us


def test_what_is_not_known_gives_no_prediction(h200):
    for field in ("memory_bandwidth_bytes_per_s", "sm_count"):
        assert predicted("direct_hwc8", DEEP, dataclasses.replace(h200, **{field: None})) is None


@pytest.mark.parametrize("tactic", TACTICS, ids=lambda t: t.name)
def test_more_work_never_takes_less_time(tactic, h200):
    group = 64 if tactic.name.startswith("depthwise") else 1
    times = [
        predicted(tactic.name, problem((n, 64, 28, 28), 64, group=group), h200).predicted_us
        for n in (1, 4, 16, 64)
    ]
    assert times == sorted(times)
    assert times[0] > START_US
