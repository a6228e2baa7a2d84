"""`--pin`, `--ban`, `--prefer` on the double: honoured, refused, and found where not honoured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.site import Site, make_site
from tests.end_to_end.test_trt_build import RELEASES, build, refused, report_of, target_of
from tests.models import conv_chain, save
from trtplug.bundle.manifest import verify_bundle

if TYPE_CHECKING:
    from pathlib import Path

    from tests.end_to_end.recordings import Recordings

SLOW = "sm90_xmma_fprop_conv_tilesize64x32x64_stage3"
"""Of no layer of the chain the fastest."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A machine with TensorRT 11.4, and a chain of three convolutions in its folder."""
    made = make_site(tmp_path)
    save(conv_chain(3), made.work / "m.onnx")
    return made


@pytest.fixture
def built(recordings: Recordings, tmp_path: Path, own_store: Path) -> Site:
    """The same, with the bundle `out` of a plain build."""
    return recordings.copy(tmp_path, own_store)


def chosen(site: Site, out: str = "out") -> list[tuple[str, str]]:
    """Kernel of each layer, and who decided it."""
    return [(x["kernel"], x["selected_by"]) for x in report_of(site, out)["layers"]]


def lock_of(site: Site, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site.work / out / "sm_90/lock.json").read_text())
    return found


def entries(site: Site) -> list[dict[str, Any]]:
    listed = json.loads(site.trtplug("cache", "list", "--format", "json").out)
    found: list[dict[str, Any]] = listed["entries"]
    return found


@pytest.mark.parametrize(
    ("version", "layer"), [(RELEASES[0], "conv1 + relu1"), (RELEASES[-1], "relu1")]
)
def test_a_pinned_layer_has_its_tactic_and_no_other_layer_changes(
    recordings: Recordings, tmp_path: Path, own_store: Path, version: str, layer: str
):
    site = recordings.copy(tmp_path, own_store, version=version)
    (site.work / "out").rename(site.work / "plain")
    ran = build(site, "--pin", f"{layer}={SLOW}")
    target = target_of(site, ran)
    plain = chosen(site, "plain")
    assert {by for _, by in plain} == {"builder"}
    assert SLOW not in {kernel for kernel, _ in plain}
    assert chosen(site) == [plain[0], (SLOW, "pin"), plain[2]]
    assert "pass 1 of 2: recording the tactics of each layer" in ran.err
    assert "pass 2 of 2: building with 1 tactic changed" in ran.err
    assert "Tactics overridden by --pin, --ban or --prefer: 1" in ran.out
    # The candidates are those of the first pass, with the builder's own times.
    pinned = report_of(site)["layers"][1]
    assert len(pinned["candidates"]) == 6
    assert pinned["margin"] < 0
    assert pinned["near_tie"] is None
    assert target.flags["pin"] == f"{layer}={SLOW}"
    lock = lock_of(site)
    assert [t["asked_by"] for t in lock["tactics"] if t["kernel"] == SLOW] == ["pin"]
    assert sum(t["asked_by"] is not None for t in lock["tactics"]) == 1
    assert lock["layers"][1]["kernel"] == SLOW
    assert verify_bundle(site.work / "out").problems == ()
    assert site.trtplug("lock", "verify", "out", "--here").status == 0
    diff = site.trtplug("lock", "diff", "plain", "out")
    assert diff.status == 1
    assert SLOW in diff.out


def test_the_recorded_winners_go_to_the_store_and_the_edited_ones_do_not(site: Site):
    target_of(site, build(site, "--pin", f"conv0={SLOW}"))
    (entry,) = entries(site)
    assert [(b["word"], b["misses"]) for b in entry["sidecar"]["builds"]] == [("cold", 3)]
    target_of(site, build(site, "--out", "plain"), "plain")
    assert report_of(site, "plain")["timing_cache"]["word"] == "hit"
    assert SLOW not in {kernel for kernel, _ in chosen(site, "plain")}


def test_every_layer_is_recorded_with_a_full_store_too(built: Site):
    """A hit prints no table, so the first pass begins with an empty cache; pinned by its hash."""
    site = built
    layer = report_of(site)["layers"][2]
    (slow,) = (c["tactic_hash"] for c in layer["candidates"] if c["kernel"] == SLOW)
    target_of(site, build(site, "--pin", f"conv2={slow}", "--out", "b"), "b")
    assert chosen(site, "b")[2] == (SLOW, "pin")
    assert [len(x["candidates"]) for x in report_of(site, "b")["layers"]] == [6, 6, 6]


def test_a_ban_leaves_the_fastest_of_the_others(built: Site):
    site = built
    plain = report_of(site)["layers"]
    banned = plain[0]["kernel"]
    target_of(site, build(site, "--ban", banned, "--out", "b"), "b")
    for before, after in zip(plain, report_of(site, "b")["layers"], strict=True):
        left = [c["kernel"] for c in before["candidates"] if c["kernel"] != banned]
        assert after["kernel"] == left[0]
        assert after["selected_by"] == ("ban" if before["kernel"] == banned else "builder")


def test_a_preference_is_taken_where_there_is_one(site: Site):
    target_of(site, build(site, "--prefer", "*tilesize64x32x64*"))
    assert chosen(site) == [(SLOW, "prefer")] * 3


def test_choices_that_the_builder_makes_anyway_change_nothing(built: Site):
    site = built
    kernel = report_of(site)["layers"][0]["kernel"]
    ran = build(site, "--pin", f"conv0={kernel}", "--ban", "cudnn*", "--out", "b")
    target_of(site, ran, "b")
    assert "building with 0 tactics changed" in ran.err
    assert chosen(site, "b") == chosen(site)


def test_pins_in_the_config_and_the_engine_store(site: Site):
    (site.work / "trtplug.toml").write_text(
        "[build]\nbackend = 'trt'\ntarget = ['local']\nmodel = 'm.onnx'\n"
        f"pin = ['conv0={SLOW}']\nban = ['cudnn*']\nprefer = ['*128x64x32*']\n"
    )
    target = target_of(site, site.trtplug("build", "--config", "trtplug.toml"))
    assert [target.flags[n] for n in ("pin", "ban", "prefer")] == [
        f"conv0={SLOW}",
        "cudnn*",
        "*128x64x32*",
    ]
    assert chosen(site)[0] == (SLOW, "pin")
    # An engine with these pins is not one without.
    assert not target_of(site, build(site, "--out", "b"), "b").from_store
    again = site.trtplug("build", "--config", "trtplug.toml", "--out", "c")
    assert target_of(site, again, "c").from_store


def test_repeated_builds_record_once(site: Site):
    ran = build(site, "--pin", f"conv0={SLOW}", "--repeat", "2")
    agreement = target_of(site, ran).agreement
    assert agreement is not None
    assert agreement.builds == 2
    assert ran.err.count("pass 1 of 2") == ran.err.count("pass 2 of 2") == 1


def test_the_recording_engine_is_not_run(site: Site):
    """The kernel that crashes may be the one that is to go."""
    site.script(crash="execute")
    ran = build(site, "--ban", "*64x64x64*")
    assert "the finished engine crashed" in refused(ran, 3, "build-failed")
    assert "pass 2 of 2" in ran.err


# --- what cannot be honoured ------------------------------------------------------------------


def refused_pin(site: Site, *flags: str) -> str:
    err = refused(build(site, *flags), 2, "tactic-unavailable")
    assert not (site.work / "out").exists()
    return err


def test_a_tactic_that_the_layer_has_not_names_those_it_has(site: Site):
    err = refused_pin(site, "--pin", "conv0=cudnn_magic")
    assert "conv0 + relu0: it has no tactic cudnn_magic; there are:" in err
    assert err.count("_stage3") == 6


def test_a_layer_that_there_is_not_names_those_there_are(site: Site):
    err = refused_pin(site, "--pin", f"conv9={SLOW}")
    assert "conv9: the build tried no tactics for a layer of that name; there are:" in err
    assert "conv0 + relu0\n  conv1 + relu1\n  conv2 + relu2" in err


def test_a_ban_that_leaves_nothing(site: Site):
    assert "leaves it no tactic" in refused_pin(site, "--ban", "*")


def test_without_a_cache_in_use_there_are_no_tactics_to_choose_from(site: Site):
    """At optimization level 0 TensorRT ignores the timing cache."""
    err = refused_pin(site, "--pin", f"conv0={SLOW}", "--optimization-level", "0")
    assert "conv0" in err


@pytest.mark.parametrize("how", ["deaf", "stubborn"])
def test_a_builder_that_takes_another_tactic_is_found_out(site: Site, how: str):
    site.script(**{how: ["conv1*"]})
    err = refused_pin(site, "--pin", f"conv1={SLOW}")
    assert "conv1 + relu1: " in err
    assert f"{SLOW}" in err
    assert err.count("_stage3") >= 6


def test_a_builder_that_cannot_use_the_tactic_says_so_late(site: Site):
    site.script(unusable=[SLOW])
    err = refused_pin(site, "--pin", f"conv1={SLOW}")
    assert "conv1 + relu1: TensorRT did not build with the tactics that were asked for" in err
    assert "of the timing cache cannot be used for conv1 + relu1" in err
    assert err.count("_stage3") == 6


def test_a_banned_kernel_under_another_name_in_the_engine(site: Site):
    """A ban holds for the names that the engine has, not for those of the log."""
    site.script(unnamed=["*64x64x64*", "*128x64x32*", "*32x32x64*"])
    err = refused_pin(site, "--ban", "renamed_*")
    assert "which is banned" in err


def test_pins_where_the_engine_names_no_kernel_as_the_log_does(site: Site):
    """What the first pass did not show, the second cannot prove; the cache still does."""
    site.script(unnamed=["*"])
    target_of(site, build(site, "--pin", f"conv1={SLOW}"))
    kernels = {t["op"]: t["kernel"] for t in lock_of(site)["tactics"]}
    assert kernels["conv1 + relu1"] == SLOW
    site.script(unnamed=["*"], stubborn=["conv1*"])
    err = refused(build(site, "--pin", f"conv1={SLOW}", "--force"), 2, "tactic-unavailable")
    assert "conv1 + relu1" in err


# --- what cannot be meant ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--pin", "conv0"), "is not LAYER=TACTIC"),
        (("--pin", "conv0=a", "--require-cache"), "--require-cache needs the store's"),
        (("--ban", "a", "--locked", "x"), "--pin, --ban and --prefer cannot apply"),
    ],
)
def test_wrong_use(site: Site, flags: tuple[str, ...], words: str):
    assert words in refused(build(site, *flags), 2, "usage")


@pytest.mark.parametrize("flag", ["--pin", "--ban", "--prefer"])
def test_rtx_has_no_tactics_to_choose(site: Site, flag: str):
    ran = site.trtplug(
        "build", "m.onnx", "--backend", "rtx", "--target", "sm_89", flag, "conv0=0x1"
    )
    assert f"{flag}: backend rtx" in refused(ran, 2, "option-unsupported")
