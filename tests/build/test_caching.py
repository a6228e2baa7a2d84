from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.samples import small_report
from tests.timing.cache_stand_in import StandIn, identity, key, values
from tests.timing.test_store import build
from trtplug.build.strategy import UNKNOWN, Caching, gate_problem
from trtplug.report.candidates import report_timing_cache
from trtplug.timing.accounting import account
from trtplug.timing.files import CACHE
from trtplug.timing.store import CacheOutcome, TimingCacheStore


@pytest.fixture
def caching(tmp_path):
    return Caching(
        api=StandIn(),
        store=TimingCacheStore(root=tmp_path / "timing"),
        identity=identity(),
        use="use",
        work=tmp_path,
        model_sha256="0" * 64,
    )


def test_the_store_is_used(caching):
    build(caching.store, [1])
    attached = caching.attach()
    assert caching.bypass_reason == ""
    assert attached.before == {key(1): "0x1"}


@pytest.mark.parametrize(
    "fields",
    [
        {"use": "fresh"},
        {"identity": identity(driver=UNKNOWN)},
        {"identity": identity(cuda=UNKNOWN)},
    ],
)
def test_the_store_is_left_alone(caching, tmp_path, fields):
    build(caching.store, [1], who=fields.get("identity"))
    apart = replace(caching, **fields)
    assert apart.attach().blob is None
    (tmp_path / CACHE).write_bytes(StandIn().make(values(1, 2)))
    outcome = apart.publish(apart.attach(), tmp_path)
    assert outcome.reason == apart.bypass_reason != ""
    assert outcome.sha256 is None
    assert caching.store.attach(apart.identity, StandIn()).before.keys() == {key(1)}


def test_a_store_that_cannot_be_written_is_told_and_no_more(caching, tmp_path):
    (tmp_path / "timing").write_text("in the way")
    (tmp_path / CACHE).write_bytes(StandIn().make(values(1)))
    outcome = caching.publish(caching.attach(), tmp_path)
    assert outcome.word == "cold"
    assert outcome.reason.startswith("the store cannot be written: ")
    assert (tmp_path / f"{CACHE}.json").is_file()


def test_only_a_hit_passes_the_gate():
    report = small_report()
    before = {key(1): "0x1"}
    hit = CacheOutcome(
        word="hit", reason="", quarantined=None, accounting=account(before, before), sha256=None
    )
    assert gate_problem(replace(report, timing_cache=report_timing_cache(hit))) == ""
    for word in ("cold", "partial", "rejected"):
        other = report_timing_cache(replace(hit, word=word, reason="why"))
        words = gate_problem(replace(report, timing_cache=other))
        assert words == f"the timing cache was {word}: why"
    assert gate_problem(replace(report, timing_cache=None)) == "the build left no timing cache"
