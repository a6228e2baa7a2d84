"""A builder's double in the real one's place, for tests that need no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.backends.double import DoubleBackend
from tests.models import conv_relu, save
from trtplug.backends import find
from trtplug.backends.find import NullBackend

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and the tests' own, to work in."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> DoubleBackend:
    """What its child does is the stem of the model's name, see `tests/backends/double_child`."""
    backend = DoubleBackend()
    monkeypatch.setattr(find, "BACKENDS", (backend, NullBackend()))
    return backend


@pytest.fixture
def model(here: Path) -> Path:
    """conv_relu as `build.onnx`: the double builds it."""
    return save(conv_relu(), here / "build.onnx")
