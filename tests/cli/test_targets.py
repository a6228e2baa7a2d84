"""`trtplug targets`: every profile, in each form, with who can build for it here."""

from __future__ import annotations

import json

import pytest

from tests.cli_runner import run_here
from trtplug.settings import resource_folder

NAMES = sorted(p.stem for p in resource_folder("profiles").glob("*.toml"))


def test_json_lists_each_profile_once_in_order_of_the_sm():
    raw = json.loads(run_here("targets", "--format", "json").out)
    assert raw["schema"] == "trtplug.targets/1"
    assert sorted(t["name"] for t in raw["targets"]) == NAMES
    sms = [int(t["sm"].removeprefix("sm_")) for t in raw["targets"]]
    assert sms == sorted(sms)


@pytest.mark.rtx
def test_builders_are_said_and_want_of_one_too():
    raw = json.loads(run_here("targets", "--format", "json").out)
    builders = {t["name"]: t["backends"] for t in raw["targets"]}
    assert builders["rtx4090"] == ["rtx"]
    assert builders["h100-sxm"] == []
    text = run_here("targets").out
    (line,) = [x for x in text.splitlines() if x.startswith("h100-sxm")]
    assert line.endswith("none: build on a machine with this GPU")


@pytest.mark.parametrize("format", ["text", "markdown"])
def test_table_has_a_row_for_each(format: str):
    out = run_here("targets", "--format", format).out
    assert all(name in out for name in NAMES)
    rows = out.strip().splitlines()
    assert len(rows) == len(NAMES) + (2 if format == "markdown" else 1)


def test_broken_profile_of_the_users_own_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mine.toml").write_text("gpu = 1")
    monkeypatch.setenv("TRTPLUG_PROFILES", str(tmp_path))
    ran = run_here("targets")
    assert ran.status == 2
    assert "mine.toml" in ran.err
