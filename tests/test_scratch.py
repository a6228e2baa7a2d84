"""Scratch folders: gone at the end, and what a killed process left is told from work under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from trtplug.errors import OutputError
from trtplug.store import as_output_error, scratch_folder, sweep

if TYPE_CHECKING:
    from pathlib import Path

LONG_AGO = (0, 0)

HOLD = """
import sys, time
from pathlib import Path
from trtplug.store import scratch_folder
with scratch_folder(Path(sys.argv[1]), ".o.partial-") as folder:
    (folder / "half").write_text("")
    print(folder, flush=True)
    time.sleep(60)
"""


def test_folder_goes_whatever_happens_inside(tmp_path: Path):
    with scratch_folder(tmp_path / "a/b", "p-") as folder:
        (folder / "file").write_text("")
    assert not folder.exists()
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path, "p-") as folder:
        raise KeyboardInterrupt
    assert not folder.exists()


def test_folder_may_be_renamed_away(tmp_path: Path):
    with scratch_folder(tmp_path, "p-") as folder:
        folder.rename(tmp_path / "published")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["published"]


@pytest.mark.parametrize("below", ["file/x", "file/x/y", "x" * 300])
def test_place_that_cannot_be_written_is_named(tmp_path: Path, below: str):
    (tmp_path / "file").write_text("")
    place = tmp_path / below
    with pytest.raises(OutputError) as caught, scratch_folder(place, "p-"):
        pass
    assert str(place) in caught.value.message


def test_folder_of_a_killed_process_is_swept_and_of_a_live_one_is_not(tmp_path: Path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        folder = tmp_path / os.path.basename(holder.stdout.readline().strip())  # noqa: PTH119
        os.utime(folder, LONG_AGO)
        sweep(tmp_path, ".o.partial-")
        assert folder.exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        sweep(tmp_path, ".o.partial-")
        assert not folder.exists()
    finally:
        holder.kill()
        holder.wait()


def test_young_folder_is_left_alone(tmp_path: Path):
    (tmp_path / "p-0123456789ab").mkdir()
    sweep(tmp_path, "p-")
    assert (tmp_path / "p-0123456789ab").exists()
    os.utime(tmp_path / "p-0123456789ab", (time.time() - 61,) * 2)
    sweep(tmp_path, "p-")
    assert not (tmp_path / "p-0123456789ab").exists()


@pytest.mark.parametrize(
    "name", ["p-backup", "p-0123456789abc", "p-0123456789AB", "xp-0123456789ab"]
)
def test_folders_of_the_user_that_start_alike_are_left_alone(tmp_path: Path, name: str):
    (tmp_path / name).mkdir()
    os.utime(tmp_path / name, LONG_AGO)
    sweep(tmp_path, "p-")
    assert (tmp_path / name).exists()


def test_links_and_files_are_left_alone(tmp_path: Path):
    (tmp_path / "away").mkdir()
    (tmp_path / "p-0123456789ab").symlink_to(tmp_path / "away")
    (tmp_path / "p-0123456789ac").write_text("")
    os.utime(tmp_path / "away", LONG_AGO)
    sweep(tmp_path, "p-")
    assert len(list(tmp_path.iterdir())) == 3


def test_sweep_of_a_place_that_is_not_there_is_silent(tmp_path: Path):
    sweep(tmp_path / "nowhere", "p-")


def test_errors_of_the_system_are_output_errors_and_others_pass(tmp_path: Path):
    with pytest.raises(OutputError, match="No such file"), as_output_error(tmp_path):
        (tmp_path / "a/b").write_text("")
    with pytest.raises(ValueError, match="ours"), as_output_error(tmp_path):
        raise ValueError("ours")
