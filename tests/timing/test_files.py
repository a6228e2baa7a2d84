"""Writing; what reading refuses is in test_timing_cache and test_cache_transfer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.timing.cache_stand_in import StandIn, identity, values
from trtplug.files import write_whole
from trtplug.timing.files import CacheEntry, make_sidecar, read_entry, write_entry


def entry(*numbers):
    blob = StandIn().make(values(*numbers))
    return CacheEntry(sidecar=make_sidecar(identity(), blob, values(*numbers), ()), blob=blob)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_at_any_step_leaves_the_old_file(tmp_path, monkeypatch, step):
    file = tmp_path / "f"
    write_whole(file, b"old")

    def refuse(*_):
        raise OSError("no")

    monkeypatch.setattr(*((os, step) if step == "fsync" else (Path, step)), refuse)
    with pytest.raises(OSError, match="no"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_pair_whose_sidecar_cannot_be_written_is_still_the_old_pair(tmp_path, monkeypatch):
    write_entry(tmp_path, entry(1))
    replace = Path.replace

    def refuse_sidecars(self, target):
        if target.suffix == ".json":
            raise OSError("no")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse_sidecars)
    with pytest.raises(OSError, match="no"):
        write_entry(tmp_path, entry(1, 2))
    assert read_entry(tmp_path, identity()) == entry(1)


def test_one_pair_follows_another(tmp_path):
    for numbers in ((1,), (1, 2), (1, 2), (3,)):
        write_entry(tmp_path, entry(*numbers))
        assert read_entry(tmp_path, identity()) == entry(*numbers)
        assert len(list(tmp_path.iterdir())) == 2


def test_an_empty_folder_holds_none(tmp_path):
    assert read_entry(tmp_path, None) is None
    assert read_entry(tmp_path / "absent", None) is None
