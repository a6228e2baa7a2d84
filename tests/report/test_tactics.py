from __future__ import annotations

from dataclasses import replace

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, table
from tests.timing.cache_stand_in import identity
from trtplug.backends.cache_api import CacheValue
from trtplug.report.candidates import Tactics
from trtplug.timing.files import CacheEntry, make_sidecar

RECORDED = table("conv", [0.01, 0.02])
SLOW = RECORDED.candidates[1].tactic_hash
OTHER = table("gemm", [0.5, 0.6], key=OTHER_KEY)


def cached(**winners) -> CacheEntry:
    values = {k: CacheValue(tactic_hash=h, time_ms=1.0) for k, h in winners.items()}
    return CacheEntry(sidecar=make_sidecar(identity(), b"", values, ()), blob=b"")


def test_tables_of_an_earlier_pass_have_the_winners_of_the_cache():
    tactics = Tactics(tables=(RECORDED, OTHER), overridden_by={KEY: "pin"})
    first, second = tactics.with_log((), cached(**{KEY: SLOW})).tables
    assert first.selected == SLOW
    assert first.candidates == RECORDED.candidates
    # What the cache lacks has no key there: at level 0 a builder keeps none of them.
    assert second == replace(OTHER, key="")
    assert tactics.selected_by() == {KEY: "pin"}


def test_a_table_in_the_builds_own_log_counts_more():
    again = table("conv", [0.03, 0.04])
    (found,) = Tactics(tables=(RECORDED,)).with_log((again,), None).tables
    assert found == again


def test_nothing_in_a_replay_is_the_builders_choice():
    tactics = Tactics(tables=(RECORDED, OTHER), overridden_by={KEY: "pin"}, locked=True)
    assert tactics.selected_by() == {KEY: "lock", OTHER_KEY: "lock"}
