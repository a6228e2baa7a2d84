"""Bundles: published whole or not at all, replaced in one step, checked file by file."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.bundle.samples import FILES, fill, publish
from trtplug.bundle import bundle
from trtplug.bundle.bundle import bundle_folder, refuse_if_in_the_way
from trtplug.bundle.manifest import read_manifest, verify_bundle, write_manifest
from trtplug.errors import DocumentError, OutputError, OutputInTheWayError

if TYPE_CHECKING:
    from pathlib import Path


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_bundle_appears_whole_and_verifies(tmp_path: Path):
    manifest = publish(tmp_path / "a/b/out")
    check = verify_bundle(tmp_path / "a/b/out")
    assert check.problems == ()
    assert check.files == len(FILES)
    assert check.manifest == manifest == read_manifest(tmp_path / "a/b/out")
    assert names(tmp_path / "a/b") == ["out"]


def test_nothing_is_there_until_the_end_nor_after_an_error(tmp_path: Path):
    def give_up():
        with bundle_folder(tmp_path / "out") as folder:
            fill(folder)
            assert not (tmp_path / "out").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert names(tmp_path) == []


@pytest.mark.parametrize("exchange", [True, False])
def test_old_bundle_is_replaced_and_leaves_nothing(tmp_path: Path, monkeypatch, exchange: bool):
    if not exchange:
        monkeypatch.setattr(bundle, "_exchange", lambda one, other: False)
    publish(tmp_path / "out", b"old")
    publish(tmp_path / "out", b"new")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out/sm_89/build.log").read_bytes().endswith(b"new")
    assert verify_bundle(tmp_path / "out").problems == ()


def test_empty_folder_is_filled(tmp_path: Path):
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert verify_bundle(tmp_path / "out").problems == ()


def test_old_bundle_stays_where_the_new_one_fails(tmp_path: Path):
    publish(tmp_path / "out", b"old")

    def give_up():
        with bundle_folder(tmp_path / "out"):
            raise RuntimeError

    with pytest.raises(RuntimeError):
        give_up()
    assert (tmp_path / "out/sm_89/build.log").read_bytes().endswith(b"old")
    assert names(tmp_path) == ["out"]


def _a_file(out: Path):
    out.write_text("mine")


def _a_link(out: Path):
    (out.parent / "away").mkdir()
    out.symlink_to(out.parent / "away")


def _a_dangling_link(out: Path):
    out.symlink_to("nowhere")


def _a_folder_of_mine(out: Path):
    out.mkdir()
    (out / "thesis.txt").write_text("mine")


def _a_bundle_with_a_file_of_mine(out: Path):
    publish(out)
    (out / "sm_89/thesis.txt").write_text("mine")


def _a_bundle_of_a_later_version(out: Path):
    publish(out)
    text = (out / "manifest.json").read_text().replace("manifest/1", "manifest/2")
    (out / "manifest.json").write_text(text)


IN_THE_WAY = (
    _a_file,
    _a_link,
    _a_dangling_link,
    _a_folder_of_mine,
    _a_bundle_with_a_file_of_mine,
    _a_bundle_of_a_later_version,
)


@pytest.mark.parametrize("put", IN_THE_WAY)
def test_what_is_not_ours_is_never_replaced(tmp_path: Path, put):
    put(tmp_path / "out")
    before = {p: p.lstat().st_mtime_ns for p in tmp_path.rglob("*")}
    with pytest.raises(OutputInTheWayError, match="will not be replaced"):
        refuse_if_in_the_way(tmp_path / "out")
    with pytest.raises(OutputInTheWayError), bundle_folder(tmp_path / "out"):
        pass
    assert {p: p.lstat().st_mtime_ns for p in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("below", ["file/out", "o" * 300, os.fsdecode(b"o\xff")])
def test_out_that_cannot_be_is_an_output_error(tmp_path: Path, below: str):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError), bundle_folder(tmp_path / below):
        pass
    assert names(tmp_path) == ["file"]


def test_each_changed_byte_is_found_and_named(tmp_path: Path):
    publish(tmp_path / "out")
    for name in FILES:
        file = tmp_path / "out/sm_89" / name
        good = file.read_bytes()
        place = random.Random(0).randrange(len(good))
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert verify_bundle(tmp_path / "out").problems == (
            f"sm_89/{name}: SHA-256 does not match the manifest",
        )
        file.write_bytes(good)


def test_missing_long_and_strange_files_are_named_all_at_once(tmp_path: Path):
    publish(tmp_path / "out")
    place = tmp_path / "out/sm_89"
    (place / "report.json").unlink()
    (place / "build.log").write_bytes(b"longer than it was")
    (place / "stranger").write_text("")
    problems = verify_bundle(tmp_path / "out").problems
    assert set(problems) == {
        "sm_89/report.json: missing",
        "sm_89/build.log: 18 bytes, the manifest says 6",
        "sm_89/stranger: not in the manifest",
    }


@pytest.mark.parametrize("path", ["../../secret", "/etc/hostname", "sm_89/../../secret", ".."])
def test_manifest_that_points_outside_is_not_followed(tmp_path: Path, path: str):
    publish(tmp_path / "out")
    (tmp_path / "secret").write_text("secret")
    file = tmp_path / "out/manifest.json"
    file.write_text(file.read_text().replace('"sm_89/report.json"', f'"{path}"'))
    assert f"{path}: outside the bundle, or a link" in verify_bundle(tmp_path / "out").problems


@pytest.mark.parametrize("name", ["\\u0000", "x" * 300, "sm_89", "fifo"])
def test_manifest_with_an_odd_name_is_a_problem_not_a_fault(tmp_path: Path, name: str):
    publish(tmp_path / "out")
    os.mkfifo(tmp_path / "out/fifo")
    file = tmp_path / "out/manifest.json"
    file.write_text(file.read_text().replace('"sm_89/report.json"', f'"{name}"'))
    text = file.read_text()
    file.write_text(text.replace('"bytes": 2', '"bytes": 0'))  # as long as a FIFO says it is
    assert len(verify_bundle(tmp_path / "out").problems) >= 2


def test_folder_without_a_manifest_is_no_bundle(tmp_path: Path):
    with pytest.raises(DocumentError, match="no such file"):
        verify_bundle(tmp_path)


def test_swept_when_the_next_one_is_built(tmp_path: Path):
    left = tmp_path / ".out.partial-0123456789ab"
    left.mkdir()
    os.utime(left, (0, 0))
    publish(tmp_path / "out")
    assert names(tmp_path) == ["out"]


def test_manifest_that_cannot_be_written_is_an_output_error(tmp_path: Path):
    def fill_in_vain():
        with bundle_folder(tmp_path / "out") as folder:
            manifest = fill(folder)
            (folder / "manifest.json").mkdir()
            write_manifest(folder, manifest)

    with pytest.raises(OutputError):
        fill_in_vain()
    assert names(tmp_path) == []
