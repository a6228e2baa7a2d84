"""Timing caches of builds with enterprise TensorRT, on the double: cold, hit, partial, rejected."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.libcuda import write_nvml
from tests.doubles.site import Site, make_site
from tests.end_to_end.test_trt_build import build, refused, report_of, target_of
from tests.models import conv_chain, save
from trtplug.bundle.manifest import verify_bundle

if TYPE_CHECKING:
    from pathlib import Path

    from tests.end_to_end.recordings import Recordings


@pytest.fixture
def site(recordings: Recordings, tmp_path: Path, own_store: Path) -> Site:
    """A machine with TensorRT 11.4 that has built `m.onnx`; a longer chain is there too."""
    made = recordings.copy(tmp_path, own_store)
    save(conv_chain(5), made.work / "five.onnx")
    return made


def cache_of(site: Site, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = report_of(site, out)["timing_cache"]
    return found


def counts(cache: dict[str, Any]) -> tuple[object, ...]:
    return tuple(cache[k] for k in ("word", "keys_before", "keys_after", "hits", "misses"))


def entries(site: Site) -> list[dict[str, Any]]:
    listed = json.loads(site.trtplug("cache", "list", "--format", "json").out)
    found: list[dict[str, Any]] = listed["entries"]
    return found


def tables(site: Site, out: str = "out") -> int:
    return (site.work / out / "sm_90/build.log").read_text().count("Chose Runner Type: Cask")


def test_a_cold_build_fills_the_store_and_the_next_one_hits(site: Site):
    assert counts(cache_of(site)) == ("cold", 0, 3, 0, 3)
    second = build(site, "--force", "--out", "b")
    assert not target_of(site, second, "b").from_store
    assert counts(cache_of(site, "b")) == ("hit", 3, 3, 3, 0)
    assert "timing cache  hit: 3 hits, 0 misses" in second.out
    # What is in the cache is not timed again, and the engine is the same.
    assert (tables(site), tables(site, "b")) == (3, 0)
    assert site.trtplug("lock", "diff", "out", "b").status == 0
    for out in ("out", "b"):
        assert verify_bundle(site.work / out).problems == ()
        assert site.trtplug("lock", "verify", out, "--here").status == 0
    (entry,) = entries(site)
    assert entry["sidecar"]["keys"] == 3
    assert [(b["word"], b["hits"], b["misses"]) for b in entry["sidecar"]["builds"]] == [
        ("cold", 0, 3),
        ("hit", None, 0),
    ]
    listed = site.trtplug("cache", "list").out
    assert "NVIDIA Double 9000  sm_90  580.95.05" in listed
    assert "attached" in listed


def test_another_model_of_the_same_flags_shares_the_entry(site: Site):
    target_of(site, build(site, "--out", "five", model="five.onnx"), "five")
    # Keys follow names and shapes: the first three convolutions are those of the other model.
    assert counts(cache_of(site, "five")) == ("partial", 3, 5, 3, 2)
    assert len(entries(site)) == 1
    # The cache of the machine holds keys of both, and that makes no choice another.
    target_of(site, build(site, "--force", "--out", "again"))
    assert site.trtplug("lock", "diff", "out", "again").status == 0


def test_other_flags_are_another_entry_and_a_pin_is_not(site: Site):
    target_of(site, build(site, "--no-tf32", "--out", "b"))
    assert cache_of(site, "b")["word"] == "cold"
    target_of(site, build(site, "--no-trial-run", "--out", "c"))
    assert cache_of(site, "c")["word"] == "hit"
    assert len(entries(site)) == 2


@pytest.mark.parametrize("what", ["driver", "gpu", "cuda", "version"])
def test_another_machine_never_gets_the_cache(site: Site, tmp_path: Path, what: str):
    given: dict[str, Any] = {
        "driver": {"driver": "590.1"},
        "gpu": {"name": "NVIDIA Double 9001"},
        "cuda": {"cuda": 13010},
        "version": {"version": "11.4.0.107"},
    }[what]
    other = make_site(tmp_path / "other", **given)
    other.script(gpu=given.get("name", "NVIDIA Double 9000"))
    save(conv_chain(3), other.work / "m.onnx")
    target_of(other, build(other))
    assert counts(cache_of(other)) == ("cold", 0, 3, 0, 3)
    assert len(entries(other)) == 2


def damage(site: Site, how: str) -> None:
    (folder,) = (p.parent for p in _store(site).rglob("current.json"))
    (blob,) = folder.glob("*.cache")
    sidecar = folder / "current.json"
    if how == "truncated":
        blob.write_bytes(blob.read_bytes()[:-7])
    elif how == "corrupt":
        data = bytearray(blob.read_bytes())
        data[-9] ^= 1
        blob.write_bytes(data)
    elif how == "foreign":
        sidecar.write_text(sidecar.read_text().replace("580.95.05", "1.0"))
    else:
        sidecar.write_text(sidecar.read_text().replace("11.4.0.106", "11.3.0.1"))


def _store(site: Site) -> Path:
    from pathlib import Path

    return Path(site.environ["TRTPLUG_STORE"])


@pytest.mark.parametrize("how", ["truncated", "corrupt", "foreign", "older"])
def test_what_does_not_fit_is_set_aside_and_the_report_says_so(site: Site, how: str):
    damage(site, how)
    ran = build(site, "--force", "--out", "b")
    target_of(site, ran, "b")
    cache = cache_of(site, "b")
    assert counts(cache) == ("rejected", 0, 3, 0, 3)
    assert cache["reason"].startswith(f"{how}: ")
    assert f".{how}." in cache["set_aside"]
    assert f"timing cache  rejected ({how}" in ran.out
    listed = site.trtplug("cache", "list").out
    assert f"{cache['set_aside']} was quarantined" in listed
    # The build has filled the store anew.
    target_of(site, build(site, "--force", "--out", "c"))
    assert cache_of(site, "c")["word"] == "hit"


# --- what may be asked ------------------------------------------------------------------------


def test_require_cache_fails_the_gate_and_writes_the_bundle(site: Site):
    # The engine in the store was built cold, so it does not do.
    first = build(site, "--require-cache", "--out", "a")
    assert not target_of(site, first, "a").from_store
    assert cache_of(site, "a")["word"] == "hit"
    ran = build(site, "--require-cache", "--out", "five", model="five.onnx")
    assert ran.status == 1
    assert "gate failed: trt-11.4:sm_90: the timing cache was partial" in ran.err
    assert verify_bundle(site.work / "five").problems == ()
    # That build has filled the cache; its engine is not the one that a later build gets.
    again = build(site, "--require-cache", "--out", "b", model="five.onnx")
    assert not target_of(site, again, "b").from_store
    assert cache_of(site, "b")["word"] == "hit"
    third = build(site, "--require-cache", "--out", "c", model="five.onnx")
    assert target_of(site, third, "c").from_store
    assert cache_of(site, "c")["word"] == "hit"
    damage(site, "truncated")
    ran = build(site, "--require-cache", "--force", "--out", "d")
    assert ran.status == 1
    assert "the timing cache was rejected: truncated" in ran.err


def test_a_build_without_the_cache_times_anew_and_leaves_the_store_alone(site: Site):
    before = entries(site)
    target_of(site, build(site, "--no-timing-cache", "--out", "b"))
    cache = cache_of(site, "b")
    assert counts(cache) == ("cold", 0, 3, 0, 3)
    assert cache["reason"] == "--no-timing-cache"
    assert cache["sha256"] is None
    assert tables(site, "b") == 3
    assert entries(site) == before
    # Its lock is as whole as any other.
    assert site.trtplug("lock", "verify", "b", "--here").status == 0
    assert site.trtplug("lock", "diff", "out", "b").status == 0


def test_repeated_builds_begin_with_the_same_cache(site: Site):
    ran = build(site, "--repeat", "2", "--out", "five", model="five.onnx")
    assert target_of(site, ran, "five").agreement is not None
    assert counts(cache_of(site, "five")) == ("partial", 3, 5, 3, 2)
    (entry,) = entries(site)
    assert [b["word"] for b in entry["sidecar"]["builds"]] == ["cold", "partial", "partial"]


def test_without_the_drivers_version_nothing_is_attached_or_kept(tmp_path: Path):
    site = make_site(tmp_path, driver=None)
    save(conv_chain(3), site.work / "m.onnx")
    for out in ("a", "b"):
        target_of(site, build(site, "--force", "--out", out), out)
        assert counts(cache_of(site, out)) == ("cold", 0, 3, 0, 3)
        assert "does not report its version" in cache_of(site, out)["reason"]
    assert entries(site) == []
    # Nor does its lock fit anywhere, not even here.
    assert "driver: " in refused(build(site, "--locked", "a", "--out", "c"), 4, "lock-unqualified")


def test_a_store_that_cannot_be_written_costs_the_build_nothing(site: Site):
    shutil.rmtree(_store(site) / "timing-caches")
    _store(site).joinpath("timing-caches").write_text("in the way")
    target_of(site, build(site, "--force"))
    assert counts(cache_of(site)) == ("cold", 0, 3, 0, 3)
    assert cache_of(site)["reason"].startswith("the store cannot be written: ")
    assert site.trtplug("lock", "verify", "out", "--here").status == 0


def test_options_of_the_cache_are_refused_where_they_cannot_be_meant(site: Site):
    err = refused(build(site, "--require-cache", "--no-timing-cache"), 2, "usage")
    assert "contradict each other" in err
    err = refused(
        site.trtplug("build", "m.onnx", "--backend", "rtx", "--target", "sm_89", "--require-cache"),
        2,
        "option-unsupported",
    )
    assert "--require-cache: backend rtx" in err
    (site.work / "trtplug.toml").write_text(
        "[build]\nbackend = 'trt'\ntarget = ['local']\nmodel = 'five.onnx'\nrequire_cache = true\n"
    )
    assert site.trtplug("build", "--config", "trtplug.toml").status == 1


def test_a_driver_that_was_updated_makes_the_cache_foreign_to_this_machine(site: Site):
    write_nvml(site.folder / "lib", driver="590.1")
    (entry,) = entries(site)
    assert entry["differs_here"] == ["driver: 580.95.05, not 590.1"]
    target_of(site, build(site, "--out", "b"))
    assert cache_of(site, "b")["word"] == "cold"
