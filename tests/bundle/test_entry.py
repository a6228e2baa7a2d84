"""Store entries of a target: put, taken back the same, or not taken at all."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from tests.bundle.samples import FILES, fill
from trtplug.bundle.bundle import put_entry, take_entry
from trtplug.plan import PlannedTarget

if TYPE_CHECKING:
    from pathlib import Path


PLANNED = PlannedTarget(
    target="rtx-1.7:sm_89",
    sm="sm_89",
    gpus=("rtx4090",),
    supported=True,
    key="0" * 64,
    in_store=True,
)


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
    assert take_entry(entry, tmp_path / "next", PLANNED) == dataclasses.replace(
        target, from_store=True
    )
    for name in FILES:
        copied = (tmp_path / "next/sm_89" / name).read_bytes()
        assert copied == (tmp_path / "again/sm_89" / name).read_bytes()


@pytest.mark.parametrize("name", ["target.json", *FILES])
def test_entry_that_goes_away_meanwhile_leaves_nothing_in_the_bundle(
    tmp_path: Path, entry: Path, name: str
):
    (entry / name).unlink()
    (tmp_path / "next").mkdir()
    assert take_entry(entry, tmp_path / "next", PLANNED) is None
    assert [p for p in (tmp_path / "next").rglob("*") if not p.is_dir()] == []


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"target": 1}'])
def test_unusable_description_is_a_miss(tmp_path: Path, entry: Path, text: str):
    (entry / "target.json").write_text(text)
    (tmp_path / "next").mkdir()
    assert take_entry(entry, tmp_path / "next", PLANNED) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"sm": "sm_89"', '"sm": "ELSEWHERE"'),
        ('"sm": "sm_89"', '"sm": "../../elsewhere"'),
        ('"sm": "sm_89"', '"sm": "sm_90"'),
        ('"target": "rtx-1.7:sm_89"', '"target": "rtx-1.7:sm_90"'),
        ('"path": "sm_89/', '"path": "../elsewhere/'),
        ('"path": "sm_89/', '"path": "sm_89/../'),
        ('"path": "sm_89/', '"path": "/sm_89/'),
        ('"file": "sm_89/', '"file": "sm_90/'),
    ],
)
def test_what_an_entry_says_never_leads_out_of_the_bundle(
    tmp_path: Path, entry: Path, old: str, new: str
):
    text = (entry / "target.json").read_text()
    assert old in text
    (entry / "target.json").write_text(
        text.replace(old, new.replace("ELSEWHERE", str(tmp_path / "elsewhere")))
    )
    (tmp_path / "next").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert take_entry(entry, tmp_path / "next", PLANNED) is None
    assert sorted(p for p in tmp_path.rglob("*") if p != tmp_path / "next/sm_89") == before


def test_a_link_in_an_entry_is_not_followed(tmp_path: Path, entry: Path):
    name = next(iter(FILES))
    (tmp_path / "secret").write_text("secret")
    (entry / name).unlink()
    (entry / name).symlink_to(tmp_path / "secret")
    (tmp_path / "next").mkdir()
    assert take_entry(entry, tmp_path / "next", PLANNED) is None
