"""Versions of installed packages: the same as `importlib.metadata` tells."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from typing import TYPE_CHECKING

from trtplug.settings import installed_version

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_all_that_pip_put_here():
    # `distributions` goes along sys.path, too: the first of a name is the one that is imported.
    told: dict[str, str] = {}
    for found in distributions():
        told.setdefault(found.metadata["Name"], found.version)
    assert len(told) > 20
    assert {name: installed_version(name) for name in told} == told


def test_any_spelling_and_no_other_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "Some_Thing-1.2+cu13.dist-info").mkdir()
    (tmp_path / "some_thing_more-9.dist-info").mkdir()
    archive = tmp_path / "some_thing.zip"
    archive.touch()
    monkeypatch.setattr(sys, "path", [str(archive), "/nowhere", str(tmp_path)])
    assert installed_version("some-thing") == "1.2+cu13"
    assert installed_version("some.thing") == "1.2+cu13"
    assert installed_version("some") is None


def test_first_of_several_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name in ("tensorrt_cu13-11.4", "tensorrt_cu12-10.9"):
        (tmp_path / f"{name}.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed_version("tensorrt", "tensorrt-cu13", "tensorrt-cu12") == "11.4"
    assert installed_version("tensorrt-cu12", "tensorrt-cu13") == "10.9"
    assert installed_version("tensorrt", "torch") is None
