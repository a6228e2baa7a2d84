"""Layers with several combinations of formats, several profiles, and hits, on the double."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import helper

from tests.doubles.site import Site, make_site
from tests.end_to_end.test_trt_build import build, refused, report_of, target_of
from tests.models import conv_chain, model_of, save
from trtplug.timing.blob import read_blob_file

if TYPE_CHECKING:
    from pathlib import Path

LINEAR = "sm90_xmma_fprop_conv_tilesize64x32x64_stage3"
LAST = "sm90_xmma_fprop_nhwc_conv_tilesize64x32x64_stage3"


@pytest.fixture(params=["10.16.1.11", "11.4.0.106"])
def site(request: pytest.FixtureRequest, tmp_path: Path, own_store: Path) -> Site:
    """A machine on which the second of three convolutions may be computed channels last."""
    made = make_site(tmp_path, version=request.param)
    save(conv_chain(3), made.work / "m.onnx")
    made.script(combinations=["conv1*"])
    return made


def test_the_combination_that_the_engine_holds_is_shown_and_all_are_read(site: Site):
    target_of(site, build(site))
    report = report_of(site)
    assert [len(x["candidates"]) for x in report["layers"]] == [6, 6, 6]
    assert {c["kernel"] for c in report["layers"][1]["candidates"]}.isdisjoint({LAST})
    assert report["layers"][1]["margin"] > 0
    # What the engine does not hold is no layer's, and nobody's fault.
    assert report["unjoined_candidates"] == []
    log = site.work / "out/sm_90/build.log"
    read = json.loads(site.trtplug("tactics", log, "--format", "json").out)
    formats = [t["formats"] for t in read["tables"] if t["layer"] == "conv1 + relu1"]
    assert len(set(formats)) == len(formats) == 2
    assert [t["runner"] for t in read["tables"]].count("Reformat") == 2
    assert read["warnings"] == []
    assert site.trtplug("lock", "verify", "out", "--here").status == 0


def test_the_cache_is_the_builder_s_own_file(site: Site):
    target_of(site, build(site))
    blob = read_blob_file(site.work / "out/sm_90/timing.cache")
    assert blob.runners == {"CaskConvolution": 4, "Reformat": 2}
    shown = site.trtplug("cache", "inspect", "out/sm_90/timing.cache")
    assert shown.status == 0, shown.err
    assert blob.uuid in shown.out
    assert (
        f"UUID = {blob.uuid}, commit ID = {blob.commit}"
        in (site.work / "out/sm_90/build.log").read_text()
    )


def test_a_hit_shows_kernel_and_time_from_the_cache(site: Site):
    target_of(site, build(site))
    second = build(site, "--force", "--out", "b")
    target_of(site, second, "b")
    assert "timing cache  hit: 6 hits, 0 misses" in second.out
    for cold, warm in zip(report_of(site)["layers"], report_of(site, "b")["layers"], strict=True):
        (only,) = warm["candidates"]
        (chosen,) = (c for c in cold["candidates"] if c["chosen"])
        assert only["kernel"] == chosen["kernel"] == warm["kernel"]
        assert only["time_us"] == pytest.approx(chosen["time_us"], rel=1e-4)
        assert only["timed_by"] == "cache"
    assert "from the cache" in site.trtplug("tactics", "b").out
    assert site.trtplug("lock", "verify", "b", "--here").status == 0
    assert site.trtplug("build", "m.onnx", "--locked", "b/sm_90/lock.json").status in (0, 2)


def test_a_pin_in_the_combination_that_the_engine_holds(site: Site):
    target_of(site, build(site, "--pin", f"conv1={LINEAR}"))
    assert report_of(site)["layers"][1]["kernel"] == LINEAR


def test_a_pin_in_a_combination_that_the_engine_does_not_hold_is_an_error(site: Site):
    err = refused(build(site, "--pin", f"conv1={LAST}"), 2, "tactic-unavailable")
    assert f"conv1 + relu1: {LAST} was asked for, the engine holds 0x" in err
    assert "with other formats" in err
    assert not (site.work / "out").exists()


@pytest.mark.parametrize("tactic", ["0xdeadbeef", "0x0"])
def test_a_hash_that_no_combination_has_names_those_of_all(site: Site, tactic: str):
    err = refused(build(site, "--pin", f"conv1={tactic}"), 2, "tactic-unavailable")
    assert err.count("_stage3") == 12


@pytest.mark.parametrize("flag", ["--pin", "--ban", "--prefer"])
def test_pins_bans_and_preferences_without_a_table_are_errors(site: Site, flag: str):
    """At level 0 the cache holds nothing, so that nothing can be edited."""
    given = (
        f"conv1={LINEAR}" if flag == "--pin" else "*64x32x64*" if flag == "--prefer" else "sm90*"
    )
    ran = build(site, flag, given, "--optimization-level", "0")
    assert "conv" in refused(ran, 2, "tactic-unavailable")


def mixed(folder: Path) -> Path:
    """A convolution, a pooling, and a matrix product: the first two are the classic tuner's."""
    rng = np.random.default_rng(7)
    weights = {
        "w0": rng.standard_normal((8, 3, 3, 3)).astype(np.float32),
        "w1": rng.standard_normal((4, 6)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "conv0", pads=[1, 1, 1, 1]),
        helper.make_node("MaxPool", ["a"], ["b"], "pool0", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("MatMul", ["b", "w1"], ["y"], "fc0"),
    ]
    proto = model_of(
        nodes, inputs={"x": (1, 3, 8, 8)}, outputs={"y": (1, 8, 4, 6)}, weights=weights
    )
    return save(proto, folder)


def test_both_tuners_in_one_engine(site: Site):
    """Poolings have tables too; the compiler's table is joined, pinned and replayed like others."""
    site.script()
    mixed(site.work / "mixed.onnx")
    target_of(site, build(site, model="mixed.onnx"))
    layers = {x["name"]: x for x in report_of(site)["layers"]}
    assert {n: x["type"] for n, x in layers.items()} == {
        "conv0": "CaskConvolution",
        "pool0": "CaskPooling",
        "fc0": "kgen",
    }
    assert [len(x["candidates"]) for x in layers.values()] == [6, 6, 6]
    blob = read_blob_file(site.work / "out/sm_90/timing.cache")
    assert (len(blob.of("classic")), len(blob.of("compiler"))) == (2, 1)
    for layer in layers:
        slow = layers[layer]["candidates"][-1]
        out = f"pin-{layer}"
        ran = build(
            site, "--pin", f"{layer}={slow['tactic_hash']}", "--out", out, model="mixed.onnx"
        )
        target_of(site, ran, out)
        pinned = {x["name"]: x for x in report_of(site, out)["layers"]}
        assert pinned[layer]["kernel"] == slow["kernel"]
        assert pinned[layer]["selected_by"] == "pin"
        assert site.trtplug("lock", "verify", out, "--here").status == 0
    # A warm build has the classic tuner's hits; the compiler says nothing of its own.
    target_of(site, build(site, "--force", "--out", "warm", model="mixed.onnx"), "warm")
    warm = report_of(site, "warm")
    assert [len(x["candidates"]) for x in warm["layers"]] == [1, 1, 0]
    assert warm["timing_cache"]["hits"] == 2
    assert site.trtplug("lock", "verify", "warm", "--here").status == 0
    locked = ("--locked", "warm/sm_90/lock.json", "--out", "replay")
    target_of(site, build(site, *locked, model="mixed.onnx"), "replay")


def test_a_full_gpu_is_said_and_is_no_crash_of_the_builder(site: Site):
    site.script(full=True)
    err = refused(build(site), 4, "backend-missing")
    assert "factory function returned nullptr" in err
    assert "the GPU is full" in err
    assert "Traceback" not in err


def test_a_second_profile_has_its_layers_from_the_first_one_s_times(site: Site):
    save(conv_chain(2, shape=("n", 16, "h", 16)), site.work / "two.onnx")
    wide = "x=4x16x32x16:8x16x32x16:16x16x32x16"
    shapes = ("--shape", "x=1x16x16x16", "--profile", wide)
    target_of(site, build(site, *shapes, model="two.onnx"))
    report = report_of(site)
    assert [(x["name"], len(x["candidates"])) for x in report["layers"]] == [
        ("conv0 + relu0", 6),
        ("conv1 + relu1", 6),
        ("conv0 + relu0 [profile 1]", 1),
        ("conv1 + relu1 [profile 1]", 1),
    ]
    assert report["layers"][3]["candidates"][0]["timed_by"] == "cache"
    first = report["layers"][:2]
    assert report["totals"]["layers"] == 2
    assert report["totals"]["bytes"] == sum(x["bytes"] for x in first)
    assert report["totals"]["bound_us"]["h200"] == sum(x["bound_us"]["h200"] for x in first)
    assert any("2 layers of further profiles" in a for a in report["assumptions"])
    assert report["unjoined_candidates"] == []
    assert report["timing_cache"]["hits"] == 0, "what it found had been timed in this build"
    assert site.trtplug("lock", "verify", "out", "--here").status == 0
    pin = ("--pin", "conv1 + relu1 [profile 1]=0x1", "--out", "b")
    err = refused(build(site, *shapes, *pin, model="two.onnx"), 2, "tactic-unavailable")
    assert "conv1 + relu1 [profile 1]: it has no tactic 0x1" in err
