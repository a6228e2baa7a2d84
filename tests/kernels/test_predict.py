"""Predictions: their terms move as the model says."""

import dataclasses

import pytest

from tests.kernels.kernels import PAIRS, SINGLES, find_tactic
from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem
from trtplug.kernels.pair import INSTRUCTIONS
from trtplug.kernels.predict import L2_SPEEDUP, PEAK_SHARE, START_US, predict
from trtplug.kernels.sm import Usage
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


def test_a_large_map_on_little_bandwidth_is_bound_by_memory(gpus):
    given = pair((32, 144, 56, 56), 24)
    found = predicted("pair_64x32x64", given, gpus["l4"])
    # In: 32 x 56 x 56 pixels of 144 channels, out: 24; the weights are nothing beside them.
    moved = 2 * (32 * 56 * 56 * (144 + 24) + 144 * (9 + 24))
    times = dict(found.terms)
    assert times["memory"] == pytest.approx(
        moved / gpus["l4"].memory_bandwidth_bytes_per_s * 1e6
    ) or times["memory"] == pytest.approx(
        moved / (L2_SPEEDUP * gpus["l4"].memory_bandwidth_bytes_per_s) * 1e6
    )


def test_what_lies_between_is_made_anew_by_each_column_of_blocks(gpus):
    gpu = gpus["a100-80gb"]
    narrow, wide = (
        dict(predicted("pair_64x128x32", pair((8, 192, 28, 28), n), gpu).terms)["depthwise"]
        for n in (128, 256)
    )
    # 98 blocks lie on 108 SMs, one on each that has any; twice as many are two on the fullest.
    assert wide == pytest.approx(2 * narrow)
    made = 108 * 64 * 192 * 9
    peak = gpu.dense_peak.fp32_flops_per_s
    assert narrow == pytest.approx(made * INSTRUCTIONS * 2e6 / (peak * PEAK_SHARE))


def test_memory_is_less_than_that_of_two_kernels(gpus):
    given, gpu = pair((8, 144, 56, 56), 24), gpus["h200"]
    alone = [
        dict(predict(find_tactic(name), p, gpu, USAGE, p.x.opt).terms)["memory"]
        for name, p in (
            ("depthwise_2", given.depthwise),
            ("pointwise_128x64x32_s3", given.pointwise),
        )
    ]
    assert dict(predicted("pair_64x32x64", given, gpu).terms)["memory"] < sum(alone)


@pytest.mark.parametrize(
    ("name", "given"), [("direct_hwc8", DEEP), ("pair_64x32x64", pair((1, 32, 9, 9), 32))]
)
def test_what_is_not_known_gives_no_prediction(h200, name, given):
    for field in ("memory_bandwidth_bytes_per_s", "sm_count"):
        assert predicted(name, given, dataclasses.replace(h200, **{field: None})) is None
    unknown = dataclasses.replace(h200.dense_peak, fp32_flops_per_s=None)
    without = dataclasses.replace(h200, dense_peak=unknown)
    assert predicted(name, given, without) is None


@pytest.mark.parametrize("tactic", [*SINGLES, *PAIRS], ids=lambda t: t.name)
def test_more_work_never_takes_less_time(tactic, h200):
    group = 64 if tactic.name.startswith("depthwise") else 1
    times = [
        predicted(
            tactic.name,
            problem((n, 64, 28, 28), 64, group=group)
            if tactic.op == "CBR"
            else pair((n, 64, 28, 28), 64),
            h200,
        ).predicted_us
        for n in (1, 4, 16, 64)
    ]
    assert times == sorted(times)
    assert times[0] > START_US
