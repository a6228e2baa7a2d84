from __future__ import annotations

import json
import os

import pytest

from tests.backends.test_cache_api import Caching
from tests.cli_runner import run_here
from tests.timing.blobs import COMMIT, blob
from tests.timing.cache_stand_in import StandIn, identity, key
from tests.timing.test_identity import machine
from tests.timing.test_store import blob_of, build
from trtplug.backends import find
from trtplug.timing.store import TimingCacheStore

HOSTILE = "<script>`x`|\x1b[31m\n[a](b)"


@pytest.fixture
def store(own_store, monkeypatch):
    monkeypatch.setattr(find, "read_machine", machine)
    return TimingCacheStore(root=own_store / "timing-caches")


@pytest.fixture
def tensorrt(monkeypatch):
    monkeypatch.setattr(find, "BACKENDS", (Caching(),))


def test_list_says_what_is_there_in_each_form(store):
    assert run_here("cache", "list").out == "no timing caches are stored\n"
    build(store, [1, 2])
    build(store, [2, 3], who=identity(driver="1"))
    text = run_here("cache", "list").out
    assert "NVIDIA H200" in text
    assert "attached" in text
    assert "driver: 1, not 580.95.05" in text
    document = json.loads(run_here("cache", "list", "--format", "json").out)
    assert document["schema"] == "trtplug.timing-caches/1"
    assert [e["sidecar"]["keys"] for e in document["entries"]] == [2, 2]
    assert {e["id"] for e in document["entries"]} >= {identity().entry_id}
    markdown = run_here("cache", "list", "--format", "markdown").out
    assert markdown.startswith("| ID | GPU |")


def test_list_says_of_which_builds_the_hits_are_known(store):
    """TensorRT's log tells nothing of a hit; an empty cache has none for certain."""

    def figures() -> list[str]:
        row = run_here("cache", "list", "--format", "markdown").out.splitlines()[-1]
        return [cell.strip() for cell in row.split("|")[10:13]]

    def again(asked):
        attached = store.attach(identity(), StandIn())
        store.publish(attached, StandIn(), attached.blob, model_sha256="", asked=asked)

    build(store, [1, 2])
    assert figures() == ["1: 1 cold", "0", "2"]
    again(None)
    assert figures() == ["2: 1 cold, 1 hit", "-", "2"]
    again([key(1)])
    assert figures() == ["3: 1 cold, 2 hit", "1+", "2"]


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_hostile_names_steer_nothing(store, form):
    build(store, [1], who=identity(gpu=HOSTILE, flags={HOSTILE: HOSTILE}))
    out = run_here("cache", "list", "--format", form).out
    assert "\x1b" not in out
    if form == "markdown":
        assert "<script>" not in out
        assert {line.count("|") for line in out.splitlines()} == {15}


def test_verify_gates(store):
    build(store, [1])
    assert run_here("cache", "verify").status == 0
    os.truncate(blob_of(store), 2)
    ran = run_here("cache", "verify")
    assert ran.status == 1
    assert "truncated: 2 bytes" in ran.out
    document = json.loads(run_here("cache", "verify", "--format", "json").out)
    assert document["intact"] is False


def test_verify_load_needs_tensorrt(store):
    ran = run_here("cache", "verify", "--load")
    assert ran.status == 4
    assert "timing caches are read by TensorRT itself" in ran.err


def test_verify_load_reads(store, tensorrt):
    build(store, [1])
    assert run_here("cache", "verify", "--load").status == 0


def test_prune_says_what_goes(store):
    build(store, [1])
    dry = run_here("cache", "prune", "--unused-days", "0", "--dry-run").out
    assert "would remove" in dry
    assert identity().entry_id in run_here("cache", "prune", "--unused-days", "0").out
    assert json.loads(run_here("cache", "prune", "--format", "json").out)["entries"] == []
    assert run_here("cache", "prune", "--unused-days", "nan").status == 2


def test_export_and_import_carry_the_sidecar(store, tmp_path, monkeypatch):
    build(store, [1])
    file = tmp_path / "c.cache"
    ran = run_here("cache", "export", identity().entry_id[:5], file)
    assert (ran.status, file.is_file()) == (0, True)
    assert "11.4.0.106" in ran.out
    monkeypatch.setenv("TRTPLUG_STORE", str(tmp_path / "other"))
    assert run_here("cache", "import", file).status == 0
    assert json.loads(run_here("cache", "list", "--format", "json").out)["entries"]


def test_import_names_the_fields_that_differ(store, tmp_path, monkeypatch):
    build(store, [1])
    file = tmp_path / "c.cache"
    run_here("cache", "export", identity().entry_id, file)
    monkeypatch.setattr(find, "read_machine", lambda: machine(driver="1"))
    ran = run_here("cache", "import", file)
    assert ran.status == 2
    assert "error[cache-mismatch]" in ran.err
    assert "driver: 580.95.05, not 1" in ran.err
    assert run_here("cache", "import", file, "--any-machine").status == 0


def test_merge_writes_the_union(store, tensorrt, tmp_path):
    files = [tmp_path / "1", tmp_path / "2"]
    for numbers, file in zip(([1], [1, 2]), files, strict=True):
        build(store, numbers)
        run_here("cache", "export", identity().entry_id, file)
    ran = run_here("cache", "merge", *files, "--out", tmp_path / "3", "--format", "json")
    assert ran.status == 0
    assert json.loads(ran.out)["sidecar"]["keys"] == 2
    assert run_here("cache", "merge", files[0], "--out", tmp_path / "4").status == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "zz", "x"),
        ("export", "", "x"),
        ("import", "absent"),
        ("import", "/dev/zero"),
        ("import", "."),
        ("merge", "a", "b", "--out", "c"),
    ],
)
def test_wrong_use_is_one_error_and_no_traceback(store, tensorrt, arguments, here):
    ran = run_here("cache", *arguments)
    assert ran.status == 2
    assert ran.err.startswith("error[")
    assert "Traceback" not in ran.err


def test_inspect_reads_any_cache(tmp_path):
    file = tmp_path / "trtexec.cache"
    file.write_bytes(blob())
    record = json.loads(run_here("cache", "inspect", file, "--format", "json").out)
    assert record["schema"] == "trtplug.timing-cache-bytes/1"
    assert record["uuid"] == "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert (record["commit"], record["classic"], record["compiler"]) == (COMMIT, 3, 2)
    assert len(record["entries"]) == 5
    text = run_here("cache", "inspect", file).out
    assert "5: 3 classic, 2 of the compiler" in text
    slowest = text.split("slowest us")[1].splitlines()
    assert slowest[1].split()[:3] == ["1,500", "compiler", "0x2a"]
    file.write_bytes(blob()[:90])
    ran = run_here("cache", "inspect", file)
    assert ran.status == 2
    assert "its header says" in ran.err
    assert run_here("cache", "inspect", tmp_path / "none").status == 2
