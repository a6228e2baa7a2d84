"""Store entries of a target: put, taken back the same, or not taken at all."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.bundle.samples import FILES, fill
from trtplug.bundle.bundle import put_entry, take_entry

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "entry").mkdir()
    manifest = fill(tmp_path / "bundle")
    put_entry(tmp_path / "bundle", manifest.targets[0], tmp_path / "entry")
    return tmp_path / "entry"


def test_taken_back_the_same_but_for_where_it_came_from(tmp_path: Path, entry: Path):
    (tmp_path / "next").mkdir()
    (tmp_path / "again").mkdir()
    target = fill(tmp_path / "again").targets[0]
    assert take_entry(entry, tmp_path / "next") == dataclasses.replace(target, from_store=True)
    for name in FILES:
        copied = (tmp_path / "next/sm_89" / name).read_bytes()
        assert copied == (tmp_path / "again/sm_89" / name).read_bytes()


@pytest.mark.parametrize("name", ["target.json", *FILES])
def test_entry_that_goes_away_meanwhile_leaves_nothing_in_the_bundle(
    tmp_path: Path, entry: Path, name: str
):
    (entry / name).unlink()
    (tmp_path / "next").mkdir()
    assert take_entry(entry, tmp_path / "next") is None
    assert [p for p in (tmp_path / "next").rglob("*") if not p.is_dir()] == []


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"target": 1}'])
def test_unusable_description_is_a_miss(tmp_path: Path, entry: Path, text: str):
    (entry / "target.json").write_text(text)
    (tmp_path / "next").mkdir()
    assert take_entry(entry, tmp_path / "next") is None
