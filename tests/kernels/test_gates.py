"""Static gates: no spills, registers within budget, main loops denser than CUTLASS's."""

import dataclasses

import pytest

from tests.kernels.gates import CUTLASS_SHARE, gate, measure
from trtplug.kernels.sass import MainLoop
from trtplug.tactics.catalog import find_tactic
from trtplug.tactics.either import ALL_TACTICS, find_either

GATED = {tile for _, tile in CUTLASS_SHARE}


@pytest.mark.parametrize("tactic", ALL_TACTICS, ids=lambda t: t.name)
def test_sm_80(tactic):
    assert gate(tactic, 80, measure(tactic, 80)) == []


# Every tactic on every SM is scripts/bench_kernels; here those nearest to their limits.
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("igemm_128x128x32_s2", 75),
        ("igemm_128x64x32_s3", 75),
        ("stem_128x64x32", 75),
        ("igemm_128x128x32_s3", 90),
        ("igemm_64x32x64_s3", 90),
        ("igemm_128x128x32_s2", 120),
        ("pair_64x128x32", 75),
        ("pair_64x256x32", 90),
        ("pair_128x64x32", 120),
    ],
)
def test_other_sms(name, number):
    tactic = find_either(name)
    assert gate(tactic, number, measure(tactic, number)) == []


def test_a_gate_that_is_missed_is_named():
    tactic = find_tactic("igemm_128x128x32_s2")
    good = measure(tactic, 80)
    thin = MainLoop(instructions=200, counts=(("HMMA", 63), ("LDL", 1)))
    bad = dataclasses.replace(
        good, loop=thin, usage=dataclasses.replace(good.usage, registers=256, spill_bytes=4)
    )
    assert gate(tactic, 80, bad) == [
        "4 bytes spilt",
        "local memory in the loop",
        "256 registers, at most 255",
        "share 31.5% is below CUTLASS's 32.0%",
        "share 31.5% is below goal's 49.0%",
    ]
