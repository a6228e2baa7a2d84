"""Predictions of pairs: their terms move as the model says."""

import dataclasses

import pytest

from tests.kernels.pair_problems import pair
from trtplug.kernels.estimate import L2_SPEEDUP, PEAK_SHARE, START_US, predict
from trtplug.kernels.pair_catalog import PAIR_TACTICS, find_pair_tactic
from trtplug.kernels.pair_estimate import INSTRUCTIONS, predict_pair
from trtplug.kernels.usage import Usage
from trtplug.profile import find_profile, load_profiles
from trtplug.settings import resource_folder

USAGE = Usage(registers=128, shared_bytes=24576, stack_bytes=0, spill_bytes=0)


@pytest.fixture(scope="module")
def gpus():
    profiles = load_profiles((resource_folder("profiles"),))
    return {name: find_profile(name, profiles) for name in ("h200", "a100-80gb", "l4")}


def predicted(name, given, profile):
    return predict_pair(find_pair_tactic(name), given, profile, USAGE, given.x.opt)


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
    from trtplug.kernels.catalog import find_tactic

    given, gpu = pair((8, 144, 56, 56), 24), gpus["h200"]
    alone = [
        dict(predict(find_tactic(name), p, gpu, USAGE, p.x.opt).terms)["memory"]
        for name, p in (
            ("depthwise_2", given.depthwise),
            ("pointwise_128x64x32_s3", given.pointwise),
        )
    ]
    assert dict(predicted("pair_64x32x64", given, gpu).terms)["memory"] < sum(alone)


def test_what_is_not_known_gives_no_prediction(gpus):
    for field in ("memory_bandwidth_bytes_per_s", "sm_count"):
        gpu = dataclasses.replace(gpus["h200"], **{field: None})
        assert predicted("pair_64x32x64", pair((1, 32, 9, 9), 32), gpu) is None


@pytest.mark.parametrize("tactic", PAIR_TACTICS, ids=lambda t: t.name)
def test_more_work_never_takes_less_time(tactic, gpus):
    times = [
        predicted(tactic.name, pair((n, 64, 28, 28), 64), gpus["h200"]).predicted_us
        for n in (1, 4, 16, 64)
    ]
    assert times == sorted(times)
    assert times[0] > START_US
