"""Ctrl-C and SIGTERM at any moment, once and twice: status 130, one line, nothing left."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli_runner import TRTPLUG
from tests.models import conv_chain, save

LINE = "interrupted; nothing was left half-written\n"


def start_listening(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A command that has just set its first handlers: what Python does before is its own."""
    process = subprocess.Popen(
        [*TRTPLUG, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    status = Path(f"/proc/{process.pid}/status")
    while not int(status.read_text().split("SigCgt:")[1].split()[0], 16) & 1 << signal.SIGHUP - 1:
        time.sleep(0.0005)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_first_half_second(tmp_path: Path, number: int):
    save(conv_chain(1), tmp_path / "m.onnx")
    for step in range(16):
        process = start_listening(tmp_path, "build", "m.onnx", "--target", "sm_89")
        time.sleep(step * 0.03)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        if process.returncode != 0:
            assert (process.returncode, out) == (130, ""), err
            assert err.endswith(LINE)
            assert "Traceback" not in err
            # An earlier one may have come through.
            assert {f.name for f in tmp_path.iterdir()} <= {"m.onnx", "out"}


@pytest.mark.rtx
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_several_signals_leave_as_little_as_one(tmp_path: Path, number: int):
    save(conv_chain(40), tmp_path / "m.onnx")
    for gap_s in (0.0, 0.002, 0.02):
        process = start_listening(tmp_path, "build", "m.onnx", "--target", "all")
        while not list(tmp_path.glob(".out.partial-*/*")) and process.poll() is None:
            time.sleep(0.005)
        for _ in range(5):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)
            time.sleep(gap_s)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, ""), err
        assert err.endswith(LINE)
        assert err.count(LINE) == 1
        assert "Traceback" not in err
        assert [f.name for f in tmp_path.iterdir()] == ["m.onnx"]
