"""Numbers and times of scripts/gpu_check: the parts that the double of TensorRT cannot show."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.doubles.site import make_site
from tests.gpu import session
from tests.gpu.child import StepFailedError
from tests.gpu.flows import _close, numbers
from tests.gpu.numbers import gpu_state, reference_of, relative_error
from tests.gpu.place import REPO
from tests.gpu.questions import QUESTIONS, answer_all
from tests.gpu.steps import Outcome, Step
from tests.models import conv_relu, save

if TYPE_CHECKING:
    from pathlib import Path


def test_errors_of_outputs():
    ones = {"y": np.ones(4, np.float32)}
    assert relative_error({"y": np.full(4, 1.5, np.float16)}, ones) == 0.5
    assert relative_error({"y": np.array([1, 1, 1, np.nan], np.float16)}, ones) == "not a number"
    assert not _close({"relative_error": "not a number"})
    assert not _close({"relative_error": 0.5})
    assert _close({"relative_error": 1e-3})
    assert _close({"relative_error": None})


class StandIn:
    """As a session on a GPU whose engines add an error, and take 5 or 6 microseconds."""

    double = False
    error = 0.0

    def __init__(self, folder: Path) -> None:
        self._model = folder.parent / "plugin-never" / "m.onnx"

    def engine(self, plan: bytes) -> StandIn:
        made = type(self)(self._model.parent.parent / "any")
        made.time_us = float(plan)
        return made

    def numpy_type(self, name: str) -> Any:
        return np.float32

    def run(self, feeds: Any, outputs: Any) -> dict[str, Any]:
        _, wanted = reference_of(self._model)
        return {n: a * (1 + self.error) for n, a in wanted.items()}

    def median_us(self, feeds: Any, outputs: Any) -> tuple[float, list[float]]:
        return self.time_us, [self.time_us - 0.1, self.time_us + 0.1]

    def layer_times_us(self, feeds: Any, outputs: Any) -> dict[str, float]:
        return {"conv0": self.time_us}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, time_us in (("plugin-never", "6"), ("plugin-always", "5")):
        folder = tmp_path / name / "out" / "sm_90"
        folder.mkdir(parents=True)
        (folder / "m.engine").write_text(time_us)
        save(conv_relu(), tmp_path / name / "m.onnx")
    (tmp_path / "numbers").mkdir()
    return tmp_path / "numbers"


def test_engines_are_compared_and_timed_in_turns(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "Session", StandIn)
    facts: dict[str, Any] = {}
    numbers(here, facts)
    ours, native = facts["plugin-always"], facts["plugin-never"]
    assert (ours["median_us"], native["median_us"]) == (5.0, 6.0)
    assert ours["samples_us"] == [4.9, 5.1] * 3
    assert ours["layers_us"] == {"conv0": 5.0}
    assert ours["relative_error"] < 1e-6
    assert set(facts) == {"plugin-always", "plugin-never", "gpu_before", "gpu_after"}
    json.dumps(facts, allow_nan=False)
    outcome = Outcome(step=Step(name="numbers", kind="flow", what=""), status="passed", facts=facts)
    asked = tuple(q for q in QUESTIONS if q.step == "numbers")
    told = answer_all(asked, {"numbers": outcome}, double=False)
    assert {t["name"]: t["answer"] for t in told} == {
        "plugin-numbers": "yes",
        "plugin-faster": "yes",
    }


def test_wrong_outputs_fail_the_flow_and_are_not_timed(here: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "Session", StandIn)
    monkeypatch.setattr(StandIn, "error", 0.1)
    facts: dict[str, Any] = {}
    with pytest.raises(StepFailedError, match="outputs differ from ONNX Runtime's"):
        numbers(here, facts)
    assert "median_us" not in facts["plugin-always"]
    assert facts["plugin-always"]["relative_error"] == pytest.approx(0.1)


def test_times_are_taken_with_events(tmp_path: Path):
    """On the double, whose clock counts events: what comes is no time, and this knows it."""
    site = make_site(tmp_path / "machine", quick_plugins=True)
    code = (
        "from pathlib import Path\n"
        "import json, os, numpy as np\n"
        "from tests.gpu.session import Session\n"
        "from tests.models import conv_relu\n"
        f"session = Session(Path({str(tmp_path)!r}))\n"
        "built = session.build(conv_relu(), plugins=False)\n"
        "feeds = {'x': np.zeros((1, 3, 16, 16), np.float32)}\n"
        "outputs = {'y': ((1, 8, 16, 16), np.float32)}\n"
        "told = session.engine(built.plan).median_us(feeds, outputs)\n"
        f"Path({str(tmp_path / 'told.json')!r}).write_text(json.dumps(told))\n"
        "os._exit(0)\n"
    )
    environ = {**site.environ, "PYTHONPATH": f"{REPO}:{site.folder}"}
    subprocess.run([sys.executable, "-c", code], env=environ, check=True, timeout=120)
    median, samples = json.loads((tmp_path / "told.json").read_text())
    # One tick between two events, over the 20 runs of a sample.
    assert samples == [1e3 / 20] * 9
    assert median == 1e3 / 20


def test_state_of_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_state() is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '1980 MHz, 1980 MHz, 2619 MHz, 90.1 W, 700.00 W, 31, P0'\n")
    tool.chmod(0o755)
    state = gpu_state()
    assert state is not None
    assert (state["clocks.sm"], state["pstate"]) == ("1980 MHz", "P0")
    tool.write_text("#!/bin/sh\necho 'no devices were found'\n")
    assert gpu_state() is None
