"""scripts/device_check: to its first device call as it is, and all the way on an emulated GPU."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trtplug.emulator.checks import Checks
from trtplug.emulator.parse import parse_module
from trtplug.emulator.run import Buffer, launch
from trtplug.target import Sm

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "device_check"


@pytest.fixture
def script():
    loader = importlib.machinery.SourceFileLoader("device_check", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class EmulatedDevice:
    """As the script's own devices: runs a kernel, and answers with its output and times."""

    through = "the emulator"
    name = "Test GPU"
    sm = Sm(80)

    def run(self, compiled, launching, inputs, numbers, y):
        buffers = [Buffer(name=f"in{i}", data=a) for i, a in enumerate(inputs)]
        arguments = [*buffers, *numbers, Buffer(name="y", data=y, role="output")]
        size = (launching.grid, launching.block, launching.shared_bytes)
        launch(parse_module(compiled.ptx), compiled.name, *size, arguments, Checks(races=False))
        return y, [3.0, 1.0, 2.0]


def test_without_a_gpu_it_says_so_and_ends_with_4(tmp_path):
    done = subprocess.run(
        [sys.executable, SCRIPT, "--out", tmp_path], capture_output=True, text=True, timeout=120
    )
    if done.returncode == 0:
        pytest.skip("there is a GPU here, and CuPy or cuda-core")
    assert done.returncode == 4
    assert "no GPU can be used here" in done.stderr
    assert "CuPy" in done.stderr
    assert "cuda-core" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def run_all(script, monkeypatch, tmp_path, device, *arguments):
    small = {
        "depthwise": script.problem((1, 8, 8, 8), 8, group=8, **script.RELU),
        "pair": script.pair((1, 16, 6, 6), 32, residual="after_activation"),
        "odd FP32": script.problem((1, 5, 8, 8), 7, dtype="float", activation="gelu"),
    }
    monkeypatch.setattr(script, "LAYERS", small)
    monkeypatch.setattr(script, "open_device", lambda: device)
    monkeypatch.setattr(sys, "argv", ["device_check", "--out", str(tmp_path), *arguments])
    status = script.main()
    file = tmp_path / "test-gpu" / "kernels.jsonl"
    return status, [json.loads(line) for line in file.read_text().splitlines()]


def test_every_legal_tactic_is_run_timed_and_recorded(script, monkeypatch, tmp_path, capsys):
    status, records = run_all(script, monkeypatch, tmp_path, EmulatedDevice())
    said = capsys.readouterr().out
    assert status == 0
    assert {r["status"] for r in records} == {"ok"}
    assert {r["layer"] for r in records} == {"depthwise", "pair", "odd FP32"}
    assert {r["tactic"] for r in records} == {
        "direct_hwc8", "direct_linear", "depthwise_1", "depthwise_2", "pair_128x64x32",
        "pair_64x128x32", "pair_64x256x32", "pair_64x32x64", "pair_32x64x64",
    }  # fmt: skip
    assert {(r["median_us"], r["sm"], r["gpu"]) for r in records} == {(2.0, "sm_80", "Test GPU")}
    assert all(r["relative_error"] < 1e-3 and r["digest"] for r in records)
    assert all(r["tactic"] in said for r in records)
    assert "0 failed" in said


def test_wrong_numbers_and_failures_are_statuses_and_the_rest_goes_on(
    script, monkeypatch, tmp_path
):
    class Broken(EmulatedDevice):
        def run(self, compiled, launching, inputs, numbers, y):
            if y.dtype == np.uint32:
                raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
            out, times = super().run(compiled, launching, inputs, numbers, y)
            return out + np.uint16(64), times

    status, records = run_all(script, monkeypatch, tmp_path, Broken())
    assert status == 1
    assert {r["status"] for r in records} == {
        "wrong numbers",
        "failed: CUDA_ERROR_ILLEGAL_ADDRESS",
    }


def test_it_stops_when_its_time_is_over(script, monkeypatch, tmp_path, capsys):
    _, records = run_all(script, monkeypatch, tmp_path, EmulatedDevice(), "--limit-s", "-1")
    assert records == []
    assert "out of time" in capsys.readouterr().out


def test_each_layer_of_the_list_has_tactics_and_what_cudnn_can_do(script):
    known = {"none", "relu", "silu", "clip", "hard_swish", "gelu"}
    assert len(script.LAYERS) >= 16
    assert sum(isinstance(p, script.PairProblem) for p in script.LAYERS.values()) >= 3
    for layer in script.LAYERS.values():
        assert script.legal(layer, Sm(90))
        paired = isinstance(layer, script.PairProblem)
        for part in (layer.depthwise, layer.pointwise) if paired else (layer,):
            assert part.attributes.activation in known
            assert part.attributes.activation != "clip" or part.attributes.max == 6.0
