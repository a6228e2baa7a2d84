"""One packing a site, fixed by the tactic that is predicted fastest."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.kernels.problems import problem, problems
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.choose import KernelTarget, Offer, choose_offer, intended_usage
from trtplug.kernels.predict import predict
from trtplug.kernels.sm import SMS, blocks_per_sm
from trtplug.profile import find_profile, load_profiles
from trtplug.settings import resource_folder
from trtplug.target import Sm

PROFILES = load_profiles((resource_folder("profiles"),))


def place(sm=90, profile="h200"):
    found = find_profile(profile, PROFILES) if profile else None
    return KernelTarget(sm=Sm(sm), profile=found, shared_bytes=47 * 1024)


def test_all_legal_tactics_of_the_predicted_packing_are_offered():
    offer = choose_offer(problem((8, 64, 56, 56), 64), place())
    assert isinstance(offer, Offer)
    assert [t.name for t in offer.tactics] == ["igemm_128x64x32_s3", "igemm_64x64x32_s4"]
    assert offer.packing == "tiles_64x32"
    assert offer.why.startswith("igemm_128x64x32_s3 is predicted fastest on h200: ")
    assert offer.why.endswith(" us, not measured")


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        (problem((1, 64, 56, 56), 64), "igemm_128x128x32_s2"),
        (problem((1, 3, 64, 64), 32), "stem_128x32x32"),
        (problem((1, 8, 64, 64), 8, group=8), "depthwise_1"),
        (problem((1, 6, 9, 9), 6, group=2), "direct_hwc8"),
        (problem((1, 8, 9, 9), 8, dtype="float"), "direct_linear"),
    ],
)
def test_without_figures_a_stated_order_decides(asked, first):
    offer = choose_offer(asked, place(profile=None))
    assert isinstance(offer, Offer)
    assert offer.tactics[0].name == first
    assert offer.why == f"{first} is first in order: no figures of the GPU to predict by"


def test_globs_that_leave_nothing_are_told_what_is_legal():
    offer = choose_offer(problem((1, 3, 64, 64), 32), place(), lambda n: n == "pair_128x64x32")
    assert isinstance(offer, str)
    assert offer.startswith("--plugin-tactics excludes every legal tactic: ")


@given(problems(dtypes=("float16", "float")))
def test_an_offer_is_legal_of_one_packing_and_whole(asked):
    offer = choose_offer(asked, place())
    assert isinstance(offer, Offer)
    legal = CATALOG.legal(asked, Sm(90))
    same = {t.name for t in legal if t.packing(asked) == offer.packing}
    assert {t.name for t in offer.tactics} == same

    def time(tactic):
        profile = find_profile("h200", PROFILES)
        usage = intended_usage(tactic, asked, Sm(90))
        return predict(tactic, asked, profile, usage, asked.x.opt).predicted_us

    times = [time(t) for t in offer.tactics]
    assert times == sorted(times)
    assert times[0] == min(map(time, legal))


@given(problems())
def test_the_intended_registers_leave_room_for_the_intended_blocks(asked):
    for tactic in CATALOG.legal(asked, Sm(90)):
        usage = intended_usage(tactic, asked, Sm(90))
        held = blocks_per_sm(usage, tactic.threads, SMS[90])
        assert held >= tactic.blocks_to_try(asked, Sm(90))[0]
