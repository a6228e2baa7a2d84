"""`build --locked`: a lock replayed on the double, and every difference refused."""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.doubles.libcuda import write_libcuda, write_nvml
from tests.doubles.site import Site, make_site
from tests.end_to_end.test_trt_build import RELEASES, build, refused, report_of, target_of
from tests.models import conv_chain, conv_relu, save
from tests.timing.blobs import cache_bytes
from trtplug.bundle.manifest import verify_bundle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli_runner import Ran
    from tests.end_to_end.recordings import Recordings

SLOW = "sm90_xmma_fprop_conv_tilesize64x32x64_stage3"
LOCK = "out/sm_90/lock.json"


@pytest.fixture
def record(recordings: Recordings, tmp_path: Path, own_store: Path) -> Callable[..., Site]:
    """Gives a machine with a chain of three convolutions, and the bundle of a build."""
    return partial(recordings.copy, tmp_path, own_store)


@pytest.fixture
def site(record: Callable[..., Site]) -> Site:
    """Such a machine with TensorRT 11.4."""
    return record()


def replay(site: Site, *flags: str, lock: str = LOCK, model: str = "m.onnx") -> Ran:
    return site.trtplug("build", model, "--locked", lock, "--out", "again", *flags)


def lock_of(site: Site, out: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site.work / out / "sm_90/lock.json").read_text())
    return found


def tamper(site: Site, change: Callable[[dict[str, Any]], object], name: str = "lock.json") -> None:
    file = site.work / "out/sm_90" / name
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def mismatch(site: Site, *flags: str) -> str:
    err = refused(replay(site, *flags), 3, "lock-mismatch")
    assert not (site.work / "again").exists()
    return err


# --- replayed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", RELEASES[::3])
def test_a_replay_has_the_tactics_of_the_lock_and_times_nothing(
    record: Callable[..., Site], version: str
):
    site = record(version=version)
    # Other timings now: a build that timed anything would choose otherwise.
    site.script(drift=1)
    ran = replay(site)
    target_of(site, ran, "again")
    assert "building" in ran.err
    assert site.trtplug("lock", "diff", "out", "again").status == 0
    before, after = lock_of(site), lock_of(site, "again")
    assert [(t["key"], t["tactic_hash"], t["op"], t["kernel"]) for t in after["tactics"]] == [
        (t["key"], t["tactic_hash"], t["op"], t["kernel"]) for t in before["tactics"]
    ]
    assert [(x["cache_key"], x["tactic_hash"]) for x in after["layers"]] == [
        (x["cache_key"], x["tactic_hash"]) for x in before["layers"]
    ]
    report = report_of(site, "again")
    assert (
        "Kernels are those of the lock; nothing was timed in this build." in report["assumptions"]
    )
    assert {x["selected_by"] for x in report["layers"]} == {"lock"}
    assert report["timing_cache"]["word"] == "hit"
    assert report["timing_cache"]["reason"] == "--locked: it is the lock's own"
    assert (site.work / "again/sm_90/build.log").read_text().count("Autotuning op ") == 0
    assert verify_bundle(site.work / "again").problems == ()
    assert site.trtplug("lock", "verify", "again", "--here").status == 0
    # The replay's lock replays, and the store has neither engine nor cache of it.
    shutil.rmtree(site.work / "out")
    shutil.move(site.work / "again", site.work / "out")
    target_of(site, replay(site, lock="out"), "again")


def test_a_build_without_the_lock_would_differ(site: Site):
    """What the replay above is compared with."""
    site.script(drift=1)
    target_of(site, build(site, "--no-timing-cache", "--out", "new"), "new")
    assert site.trtplug("lock", "diff", "out", "new").status == 1


def test_a_replay_neither_reads_nor_fills_the_stores(site: Site):
    before = site.trtplug("cache", "list").out
    assert not target_of(site, replay(site), "again").from_store
    assert site.trtplug("cache", "list").out == before


def test_another_gpu_of_the_same_name_will_do(site: Site):
    write_libcuda(site.folder / "lib", uuid=b"double-gpu-00002")
    target_of(site, replay(site), "again")


def test_lock_and_cache_alone_are_enough(site: Site, own_store: Path):
    """As they are kept under version control; the store knows nothing of them, before or after."""
    shutil.rmtree(own_store)
    kept = site.work / "kept"
    kept.mkdir()
    for name in ("lock.json", "timing.cache", "timing.cache.json"):
        shutil.copyfile(site.work / "out/sm_90" / name, kept / name)
    shutil.rmtree(site.work / "out")
    target_of(site, replay(site, lock="kept"), "again")
    assert not target_of(site, build(site, "--out", "plain"), "plain").from_store
    assert report_of(site, "plain")["timing_cache"]["word"] == "cold"
    (site.work / "trtplug.toml").write_text(
        "[build]\nmodel = 'm.onnx'\nlocked = 'kept/lock.json'\nout = 'toml'\n"
    )
    target_of(site, site.trtplug("build", "--config", "trtplug.toml"), "toml")


def test_pins_are_replayed_with_the_lock_that_has_them(record: Callable[..., Site]):
    site = record("--pin", f"conv1={SLOW}")
    site.script(drift=1)
    target = target_of(site, replay(site), "again")
    assert target.flags["pin"] == f"conv1={SLOW}"
    layers = report_of(site, "again")["layers"]
    assert layers[1]["kernel"] == SLOW
    assert [t["asked_by"] for t in lock_of(site, "again")["tactics"] if t["kernel"] == SLOW] == [
        "pin"
    ]


def test_repeated_replays_are_all_compared(site: Site):
    agreement = target_of(site, replay(site, "--repeat", "2"), "again").agreement
    assert agreement is not None
    assert agreement.same_bytes


def test_a_lock_of_a_build_that_hit_is_whole(site: Site):
    """Its log has no tables, so it names no layer's key; the winners and kernels are all there."""
    target_of(site, build(site, "--force", "--out", "hit"), "hit")
    assert report_of(site, "hit")["timing_cache"]["word"] == "hit"
    site.script(drift=1)
    target_of(site, replay(site, lock="hit"), "again")
    assert site.trtplug("lock", "diff", "out", "again").status == 0
    assert lock_of(site, "hit")["layers"] == lock_of(site, "again")["layers"]


def test_sites_of_the_plugin_are_held_against_the_lock(tmp_path: Path):
    site = make_site(tmp_path, quick_plugins=True)
    save(conv_relu(), site.work / "m.onnx")
    flags = ("--plugin", "always")
    target_of(site, build(site, *flags))
    plugged = [s for s in lock_of(site)["sites"] if s["choice"] == "plugin"]
    assert plugged
    assert all(s["kit_sha256"] for s in plugged)
    target_of(site, replay(site, *flags), "again")
    assert site.trtplug("lock", "diff", "out", "again").status == 0
    shutil.rmtree(site.work / "again")
    assert "flag plugin: " in mismatch(site)

    def other(lock: dict[str, Any]) -> None:
        for place in lock["sites"]:
            place["kit_sha256"] = "f" * 64

    tamper(site, other)
    assert "site " in mismatch(site, *flags)


# --- tampered ---------------------------------------------------------------------------------


def test_one_hash_is_another(site: Site):
    tamper(site, lambda lock: lock["tactics"][1].update(tactic_hash="0xbad"))
    ran = replay(site)
    assert refused(ran, 3, "lock-mismatch").count("0xbad") == 1
    assert "building" not in ran.err
    assert not (site.work / "again").exists()


def test_one_key_more(site: Site):
    more = {"key": f"0x{7:032x}", "tactic_hash": "0x7", "op": "conv7", "kernel": "k"}
    tamper(site, lambda lock: lock["tactics"].append({**more, "onnx_nodes": []}))
    assert f"conv7 (0x{7:032x}): none, not 0x7" in mismatch(site)


def test_one_key_less(site: Site):
    gone = lock_of(site)["tactics"][0]["key"]
    tamper(site, lambda lock: lock["tactics"].pop(0))
    assert f"{gone}: 0x" in mismatch(site)


def cut_cache(site: Site, kept: int) -> None:
    """Lock, sidecar and cache agree with each other, and lack what the build needs."""
    import hashlib

    file = site.work / "out/sm_90/timing.cache"
    writer = cache_bytes()
    uuid, commit, classic, compiler = writer.unpack(file.read_bytes())
    assert compiler == []
    blob = writer.pack(uuid, commit, classic[:kept], compiler)
    file.write_bytes(blob)
    digest = hashlib.sha256(blob).hexdigest()
    keys = {f"0x{key.hex()}" for key, *_ in classic[:kept]}

    def of_sidecar(sidecar: dict[str, Any]) -> None:
        sidecar.update(sha256=digest, bytes=len(blob))
        sidecar["tactics"] = [t for t in sidecar["tactics"] if t["key"] in keys]

    def of_lock(lock: dict[str, Any]) -> None:
        lock["timing_cache"].update(sha256=digest, keys=kept)
        lock["tactics"] = [t for t in lock["tactics"] if t["key"] in keys]
        for layer in lock["layers"]:
            if layer["cache_key"] not in keys:
                layer.update(cache_key=None, tactic_hash=None)

    tamper(site, of_sidecar, "timing.cache.json")
    tamper(site, of_lock)


def test_a_lock_that_lacks_a_tactic_of_the_model_is_stopped_by_the_builder(site: Site):
    cut_cache(site, 2)
    err = mismatch(site)
    assert "did not build from its cache alone" in err
    assert "timing cache miss for conv2 + relu2" in err


def test_a_miss_that_the_builder_lets_pass_is_found_by_its_key(site: Site):
    """TensorRT's own flag was reported to leak."""
    cut_cache(site, 2)
    site.script(leak=["*"])
    err = mismatch(site)
    assert "none" in err
    assert "the build does not agree with" in err


def test_another_kernel_behind_the_same_tactic_is_found(site: Site):
    tamper(site, lambda lock: lock["layers"][1].update(kernel="another"))
    assert "layer conv1 + relu1: kernel: " in mismatch(site)


def test_a_builder_that_takes_another_tactic_is_found(record: Callable[..., Site]):
    site = record("--pin", f"conv1={SLOW}")
    site.script(deaf=["conv1*"])
    assert f"not {SLOW}" in mismatch(site)


def test_a_lock_whose_files_or_fields_contradict_each_other(site: Site):
    kept = site.work / "kept"
    shutil.copytree(site.work / "out", kept)
    for name, change, words in (
        ("timing.cache.json", lambda s: s["identity"].update(driver="1"), "driver: 1, not 580"),
        ("lock.json", lambda x: x["timing_cache"].update(keys=99), "keys is not 3"),
        ("lock.json", lambda x: x["tactics"].append(x["tactics"][0]), "listed 2 times"),
        ("lock.json", lambda x: x["flags"].update(pin="conv0=0x1"), "conv0=0x1 does not match"),
    ):
        shutil.rmtree(site.work / "out")
        shutil.copytree(kept, site.work / "out")
        tamper(site, change, name)
        assert words in mismatch(site)
        assert site.trtplug("lock", "verify", "out").status == 1


@pytest.mark.parametrize("how", ["truncated", "corrupt", "gone", "another"])
def test_a_cache_that_is_not_the_locks(site: Site, how: str):
    file = site.work / "out/sm_90/timing.cache"
    data = bytearray(file.read_bytes())
    if how == "gone":
        file.unlink()
    elif how == "another":
        save(conv_chain(2), site.work / "two.onnx")
        target_of(site, build(site, "--no-timing-cache", "--out", "two", model="two.onnx"), "two")
        for name in ("timing.cache", "timing.cache.json"):
            shutil.copyfile(site.work / "two/sm_90" / name, file.with_name(name))
        err = mismatch(site)
        assert "SHA-256 does not match the lock" in err
        assert "conv2 + relu2" in err
        return
    else:
        data[-9] ^= 1
        file.write_bytes(data[:-7] if how == "truncated" else data)
    err = refused(replay(site), 2, "cache-unusable")
    assert ("no such file" if how == "gone" else how) in err
    assert not (site.work / "again").exists()


def test_a_lock_that_records_no_tactics(site: Site):
    tamper(site, lambda lock: lock.update(tactics=None))
    assert "records no tactics" in mismatch(site)
    tamper(site, lambda lock: lock.update(schema="trtplug.lock/9"))
    refused(replay(site), 2, "document")


# --- another place ----------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["gpu", "driver", "cuda", "version"])
def test_another_machine_is_unqualified(site: Site, tmp_path: Path, what: str):
    if what == "gpu":
        write_libcuda(site.folder / "lib", name="NVIDIA Double 9001")
        words = "gpu: NVIDIA Double 9001, not NVIDIA Double 9000"
    elif what == "driver":
        write_nvml(site.folder / "lib", driver="590.1")
        words = "driver: 590.1, not 580.95.05"
    elif what == "cuda":
        write_libcuda(site.folder / "lib", cuda=13010)
        words = "cuda: 13.1, not 13.0"
    else:
        other = make_site(tmp_path / "other", version="11.4.0.107")
        shutil.copytree(site.work, other.work, dirs_exist_ok=True)
        site, words = other, "backend version: 11.4.0.107, not 11.4.0.106"
    ran = replay(site)
    err = refused(ran, 4, "lock-unqualified")
    assert words in err
    assert "hint: record it again here" in err
    assert "to build" not in ran.err
    assert not (site.work / "again").exists()
    # As the hint says: without --locked it is recorded again, and replays then.
    if what == "driver":
        target_of(site, build(site))
        target_of(site, replay(site), "again")


# --- another pin ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--no-tf32",), "flag tf32: off, not on"),
        (("--max-tactics", "2"), "flag max_tactics: 2, not none"),
        (("--precision", "fp16"), "precision: fp16, not keep"),
    ],
)
def test_other_flags(site: Site, flags: tuple[str, ...], words: str):
    ran = replay(site, *flags)
    assert words in refused(ran, 3, "lock-mismatch")
    assert "building" not in ran.err
    assert not (site.work / "again").exists()


def test_another_model_and_other_shapes(site: Site):
    save(conv_relu(shape=("n", 3, "h", "w")), site.work / "d.onnx")
    err = refused(replay(site, "--shape", "x=1x3x8x8", model="d.onnx"), 3, "lock-mismatch")
    assert "model sha256: " in err
    assert "shapes: x=1x3x8x8, not x=1x16x32x32" in err
    # The plan says so too, before anything is built.
    again = replay(site, "--shape", "x=1x3x8x8", "--dry-run", model="d.onnx")
    assert "model sha256: " in refused(again, 3, "lock-mismatch")
    assert again.out == ""


def test_pins_and_another_backend_are_wrong_use(site: Site):
    refused(replay(site, "--pin", "conv0=0x1"), 2, "usage")
    refused(replay(site, "--require-cache"), 2, "usage")
    err = refused(replay(site, "--backend", "rtx", "--target", "sm_89"), 3, "lock-mismatch")
    assert "backend: rtx, not trt" in err


# --- TensorRT-RTX -----------------------------------------------------------------------------


@pytest.mark.rtx
def test_an_rtx_lock_holds_the_build_to_inputs_and_digest(site: Site):
    rtx = ("--backend", "rtx", "--target", "sm_89", "--out", "rtx")
    ran = site.trtplug("build", "m.onnx", *rtx)
    assert ran.status == 0, ran.err
    lock = "rtx/sm_89/lock.json"
    ran = replay(site, lock=lock)
    assert ran.status == 0, ran.err
    assert "0 in the store" in ran.err
    err = refused(replay(site, "--no-tf32", lock=lock), 3, "lock-mismatch")
    assert "flag tf32: off, not on" in err
    file = site.work / lock
    document = json.loads(file.read_text())
    document["engine"]["canonical_sha256"] = "0" * 64
    file.write_text(json.dumps(document))
    err = refused(replay(site, lock=lock), 3, "lock-mismatch")
    assert "engine canonical sha256: " in err
    document["backend_version"] = "1.6.0.1"
    file.write_text(json.dumps(document))
    assert "backend version: " in refused(replay(site, lock=lock), 4, "lock-unqualified")
