"""Disks that are full or read-only: one clear error, nothing half-written, no crash."""

from __future__ import annotations

import contextlib
import resource
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import Ran, run_apart
from tests.hostile.after import check_nothing_is_half, scratch_in
from tests.models import conv_relu, save
from trtplug.bundle.manifest import verify_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.rtx

TARGETS = ("--target", "sm_86", "--target", "sm_89")


@contextlib.contextmanager
def mounted(folder: Path, *arguments: str) -> Iterator[Path]:
    """A file system of its own, where this user may mount one."""
    folder.mkdir(exist_ok=True)
    command = ("mount", *arguments, str(folder))
    if not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs; the test of file sizes covers it")
    try:
        yield folder
    finally:
        subprocess.run(("umount", "-l", str(folder)), check=True)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(conv_relu(), tmp_path / "m.onnx")


def build(model: Path, out: Path, **options: object) -> Ran:
    return run_apart("build", model, *TARGETS, "--out", out, cwd=model.parent, **options)


def is_one_output_error(ran: Ran, words: str) -> None:
    assert ran.status == 4, ran.err
    assert ran.err.count("error[") == 1
    assert "error[output]: cannot write " in ran.err
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("size_kib", [16, 128, 300, 500, 700])
def test_full_disk_under_out(tmp_path: Path, model: Path, own_store: Path, size_kib: int):
    # From the first log up to the reports of the second target.
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", f"size={size_kib}k", "none") as disk:
        is_one_output_error(build(model, disk / "out"), "No space left on device")
        assert list(disk.iterdir()) == []
    check_nothing_is_half(tmp_path, own_store)
    assert scratch_in(own_store) == []


def test_full_disk_keeps_the_bundle_that_was_there(tmp_path: Path, model: Path):
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=1300k", "none") as disk:
        out = disk / "out"
        first = run_apart("build", model, "--target", "sm_89", "--out", out, cwd=tmp_path)
        assert first.status == 0
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        is_one_output_error(build(model, out), "No space left on device")
        assert verify_bundle(out).problems == ()
        assert sorted(p.name for p in disk.iterdir()) == ["filler", "out"]


def test_full_disk_under_the_store_costs_time_and_no_more(tmp_path: Path, model: Path, monkeypatch):
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=100k", "none") as disk:
        monkeypatch.setenv("TRTPLUG_STORE", str(disk / "store"))
        ran = build(model, tmp_path / "out")
        assert ran.status == 0, ran.err
        assert verify_bundle(tmp_path / "out").problems == ()
        check_nothing_is_half(tmp_path, disk / "store")
        assert scratch_in(disk / "store") == []


def test_read_only_output_and_store(tmp_path: Path, model: Path, monkeypatch):
    (tmp_path / "fixed").mkdir()
    with mounted(tmp_path / "fixed", "-t", "tmpfs", "-o", "ro", "none") as disk:
        is_one_output_error(build(model, disk / "out"), "Read-only file system")
        monkeypatch.setenv("TRTPLUG_STORE", str(disk / "store"))
        assert build(model, tmp_path / "out").status == 0


@pytest.mark.parametrize("size_bytes", [1_000, 30_000, 200_000])
def test_files_that_end_early(tmp_path: Path, model: Path, own_store: Path, size_bytes: int):
    # A limit on the size of files is met as a full disk is, and needs no right to mount.
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))

    ran = build(model, tmp_path / "out", preexec_fn=limit)
    is_one_output_error(ran, "File too large")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]
    check_nothing_is_half(tmp_path, own_store)
