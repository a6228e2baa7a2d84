"""Fixtures that every test may use: its own store, a clean environment, and the real models."""

from __future__ import annotations

import itertools
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.real_models import LIGHT, light_model, ppocr_model
from tests.shared import ANSWERS, compile_once, shared_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Work is counted, not timed: on a busy machine any example may take long.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What a terminal, a CI service or a user's own settings would change in the output of a test.
_FOREIGN = (
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)


@pytest.fixture(scope="session", autouse=True)
def _heard_signals() -> None:
    """A job in the background or under nohup ignores signals, and would hand that on to trtplug."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def _each_kernel_is_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    os.environ[ANSWERS] = str(shared_folder(tmp_path_factory, "nvrtc"))
    compile_once()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A long test that began last would be waited for by all workers but its own."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def _new_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Numbered here: `mktemp` looks through the folders of all tests before."""
    folder = tmp_path_factory.mktemp("stores")
    return (folder / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_store(_new_store: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of the test's own, and none of the caller's settings; its path is returned."""
    for name in tuple(os.environ):
        if name.startswith(("TRTPLUG_", "POLYGRAPHY_")) or name in _FOREIGN:
            monkeypatch.delenv(name)
    # Beside tmp_path and not in it: tests count what lies in theirs.
    store = next(_new_store)
    store.mkdir()
    monkeypatch.setenv("TRTPLUG_STORE", str(store))
    return store


@pytest.fixture(scope="session")
def det() -> Path:
    """PP-OCRv4 detection, 4.7 MB; input x [batch, 3, height, width]."""
    return ppocr_model("det")


@pytest.fixture(scope="session")
def rec() -> Path:
    """PP-OCRv4 recognition, 10.9 MB; input x [batch, 3, 48, width]."""
    return ppocr_model("rec")


@pytest.fixture(scope="session")
def cls() -> Path:
    """PP-OCR direction classification, 0.6 MB; input x [batch, 3, ?, ?]: both axes called `?`."""
    return ppocr_model("cls")


@pytest.fixture(scope="session", params=LIGHT)
def light(request: pytest.FixtureRequest) -> Path:
    """Each model of `LIGHT` in turn."""
    return light_model(request.param)


@pytest.fixture(scope="session")
def light_densenet121() -> Path:
    """DenseNet-121 of the onnx package."""
    return light_model("densenet121")


@pytest.fixture(scope="session")
def light_resnet50() -> Path:
    """ResNet-50 of the onnx package."""
    return light_model("resnet50")


@pytest.fixture(scope="session")
def light_squeezenet() -> Path:
    """SqueezeNet of the onnx package: the quickest of `LIGHT` to build."""
    return light_model("squeezenet")
