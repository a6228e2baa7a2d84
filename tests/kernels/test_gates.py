"""Static gates: no spills, registers within budget, main loops denser than CUTLASS's."""

import dataclasses

import pytest

from tests.kernels.gates import count, gate, measure, measure_all, sample_of, traffic_faults
from tests.kernels.kernels import PAIRS, SINGLES, find_tactic
from trtplug.emulator.counters import AccessCount, Counters
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.family import SECTOR_BYTES
from trtplug.kernels.pair import PairTactic
from trtplug.kernels.sass import MainLoop
from trtplug.kernels.sm import SMS

ABSENT_ON_75 = {"igemm_128x128x32_s3", "igemm_128x64x32_s4", "igemm_64x64x64_s3"}
"""Through registers there are two stages: these are no other kernels there."""


NEAR = ("igemm_128x128x32_s2", "igemm_64x32x64_s3", "stem_128x64x32")
"""The tactics nearest to their limits."""


def some_tactics(number):
    """All on sm_80; on every other SM those near their limits, and a third of the rest by turns.

    Every tactic on every SM takes minutes: scripts/bench_kernels does that.
    """
    if number == 80:
        return CATALOG.tactics
    turn = sorted(SMS).index(number) % 3
    return tuple(t for i, t in enumerate(CATALOG.tactics) if i % 3 == turn or t.name in NEAR)


@pytest.mark.parametrize("number", sorted(SMS))
def test_static_gates_on_every_sm(number):
    tactics = some_tactics(number)
    found = dict(zip(tactics, measure_all(tactics, number, jobs=2), strict=True))
    absent = ABSENT_ON_75 & {t.name for t in tactics} if number == 75 else set()
    assert {t.name for t, f in found.items() if f is None} == absent
    missed = {t.name: gate(t, number, f) for t, f in found.items() if f is not None}
    assert {name: faults for name, faults in missed.items() if faults} == {}


@pytest.mark.parametrize("tactic", [*SINGLES, *PAIRS], ids=lambda t: t.name)
def test_memory_is_used_at_the_ideal_and_as_predictions_reckon(tactic):
    """No tactic meets a bank twice; implicit GEMMs ask for no sector in vain."""
    given = sample_of(tactic)
    found, work = count(tactic, 80), tactic.work(given)
    assert traffic_faults(tactic, found) == []
    loads = sum(a.units for a in found.global_ if not a.opcode.startswith("st")) * SECTOR_BYTES
    assert work.l1_bytes + work.l2_bytes == pytest.approx(loads, rel=0.2)
    waves = sum(a.units for a in found.shared) * 128
    assert work.shared_bytes == pytest.approx(waves, rel=0.2)
    made = tactic.depthwise_multiply_adds(given) if isinstance(tactic, PairTactic) else 0
    assert work.multiply_adds + made == pytest.approx(found.multiply_adds, rel=0.05)


@pytest.mark.parametrize("name", ["igemm_128x128x32_s2", "pointwise_64x64x64_s2", "stem_128x32x32"])
def test_memory_is_used_at_the_ideal_through_registers_too(name):
    tactic = find_tactic(name)
    assert traffic_faults(tactic, count(tactic, 75)) == []


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


def test_traffic_that_is_worse_than_it_should_be_is_named():
    shared = AccessCount(line=1, opcode="ldmatrix", requests=1, units=8, ideal=4)
    global_ = AccessCount(line=2, opcode="cp.async", requests=1, units=6, ideal=4)
    counters = Counters(
        blocks=1,
        warp_instructions=1,
        by_opcode={},
        multiply_adds=0,
        shared=(shared,),
        global_=(global_,),
    )
    assert traffic_faults(find_tactic("igemm_64x64x64_s2"), counters) == [
        "2.00 waves of shared memory for one",
        "1.50 sectors of global memory for one",
    ]
    assert len(traffic_faults(find_tactic("direct_hwc8"), counters)) == 1
