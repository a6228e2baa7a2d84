"""Bundles, reports, locks, timing caches and stores that version 0.1.0 wrote still read.

`tests/data/v0.1.0` was made before the plan was recorded in manifests: one bundle of `rtx`, one of
the double of `trt` with plugins, and the store with the entry of the first.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli_runner import run_here
from trtplug.bundle.bundle import read_entry, take_entry
from trtplug.bundle.manifest import read_manifest, verify_bundle
from trtplug.lock.lock import read_lock
from trtplug.plan import PlannedTarget
from trtplug.store import Store
from trtplug.timing.transfer import read_cache

OLD = Path(__file__).parents[1] / "data" / "v0.1.0"
BUNDLES = {"rtx": "sm_89", "trt": "sm_90"}


@pytest.fixture(params=BUNDLES)
def bundle(request: pytest.FixtureRequest) -> Path:
    return OLD / request.param


def document(*arguments: object):
    ran = run_here(*arguments, "--format", "json")
    assert ran.status == 0, ran.err
    return json.loads(ran.out)


def test_a_bundle_verifies_and_its_later_fields_are_none(bundle: Path):
    assert verify_bundle(bundle).problems == ()
    manifest = read_manifest(bundle)
    assert manifest.plan_sha256 is None
    assert [t.sites for t in manifest.targets] == [None]
    ran = run_here("verify-bundle", bundle)
    assert ran.status == 0, ran.err


def test_each_file_of_a_bundle_can_be_inspected(bundle: Path):
    folder = bundle / BUNDLES[bundle.name]
    (engine,) = folder.glob("*.engine")
    for file in (bundle, folder / "report.json", folder / "lock.json", engine):
        ran = run_here("inspect", file)
        assert ran.status == 0, ran.err
        assert ran.out
    report = document("inspect", folder / "report.json")
    assert report["layers"]
    assert {s["outcome"] for s in report["sites"]} == {"rtx": {"native_fused"}, "trt": {"plugin"}}[
        bundle.name
    ]


def test_a_lock_shows_verifies_and_compares(bundle: Path):
    file = bundle / BUNDLES[bundle.name] / "lock.json"
    assert document("lock", "show", file)["target"] == read_lock(file).target
    (checked,) = document("lock", "verify", bundle)["locks"]
    assert checked["intact"]
    same = run_here("lock", "diff", file, file)
    assert same.status == 0, same.err
    others = [OLD / name / sm / "lock.json" for name, sm in BUNDLES.items()]
    assert run_here("lock", "diff", *others).status == 1


def test_the_sites_of_a_lock_with_plugins():
    lock = read_lock(OLD / "trt/sm_90/lock.json")
    assert [(s.conv, s.choice, s.tactic) for s in lock.sites or ()] == [
        (f"conv{n}", "plugin", "igemm_64x32x64_s3") for n in range(3)
    ]


def test_a_timing_cache_reads_with_its_sidecar():
    entry = read_cache(OLD / "trt/sm_90/timing.cache")
    assert len(entry.sidecar.winners) == 2
    assert entry.sidecar.winners == read_lock(OLD / "trt/sm_90/lock.json").winners


def test_an_entry_of_the_store_is_whole_and_gives_its_bundle(tmp_path: Path):
    shutil.copytree(OLD / "store", tmp_path / "store")
    (folder,) = (OLD / "store/4c").iterdir()
    entry = Store(root=tmp_path / "store").find(folder.name)
    assert entry is not None
    known = read_entry(entry)
    assert known is not None
    assert known.sites is None
    (tmp_path / "out").mkdir()
    planned = PlannedTarget(
        target=known.target, sm=known.sm, gpus=(), supported=True, key=folder.name, in_store=True
    )
    made = take_entry(entry, tmp_path / "out", planned)
    assert made is not None
    assert made.from_store
    assert made.engine == read_manifest(OLD / "rtx").targets[0].engine
    for file in made.files:
        copied = (tmp_path / "out" / file.path).read_bytes()
        assert copied == (entry / Path(file.path).name).read_bytes()


@pytest.mark.rtx
def test_a_build_over_an_old_store_and_an_old_bundle(tmp_path: Path, own_store: Path):
    """A hit or a clean miss: the engine is the same either way, and the old bundle is replaced."""
    shutil.copytree(OLD / "store", own_store, dirs_exist_ok=True)
    shutil.copytree(OLD / "rtx", tmp_path / "out")
    target = ("--backend", "rtx", "--target", "sm_89", "--out", tmp_path / "out")
    ran = run_here("build", OLD / "m.onnx", *target)
    assert ran.status == 0, ran.err
    assert verify_bundle(tmp_path / "out").problems == ()
    manifest = read_manifest(tmp_path / "out")
    assert manifest.plan_sha256 is not None
    old = read_manifest(OLD / "rtx").targets[0]
    assert manifest.targets[0].engine.file == old.engine.file
    if manifest.targets[0].backend_version == old.backend_version:
        assert manifest.targets[0].engine.canonical_sha256 == old.engine.canonical_sha256
