"""The trial run's values, and its ends; whole runs are in tests/end_to_end/test_trt_build.py."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.backends import launch
from trtplug.backends.trt import trial
from trtplug.backends.trt.child_run import random_values
from trtplug.backends.trt.trial import TrialRequest, run_trial

if TYPE_CHECKING:
    from pathlib import Path

ITEM_BYTES = {
    **{"FLOAT": 4, "HALF": 2, "BF16": 2, "INT8": 1, "INT32": 4, "INT64": 8},
    **{"BOOL": 1, "UINT8": 1, "FP8": 1},
}


@given(st.sampled_from(sorted(ITEM_BYTES)), st.lists(st.integers(0, 5), max_size=4))
def test_values_fill_the_tensor_and_are_always_the_same(dtype: str, shape: list[int]):
    data = random_values(dtype, ITEM_BYTES[dtype], tuple(shape))
    assert len(data) == math.prod(shape) * ITEM_BYTES[dtype]
    assert data == random_values(dtype, ITEM_BYTES[dtype], tuple(shape))


def test_values_are_finite_floats_fair_booleans_and_zero_where_they_may_be_indices():
    floats = np.frombuffer(random_values("FLOAT", 4, (1000,)), np.float32)
    assert np.isfinite(floats).all()
    assert abs(floats.mean()) < 0.2
    assert 0.8 < floats.std() < 1.2
    bf16 = np.frombuffer(random_values("BF16", 2, (1000,)), np.uint16).astype(np.uint32) << 16
    assert np.allclose(bf16.view(np.float32), floats, rtol=2**-7)
    assert set(random_values("BOOL", 1, (100,))) == {0, 1}
    assert set(random_values("INT64", 8, (100,))) == {0}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "signal SIGSEGV"),
        ("import sys; sys.exit(7)", "exit status 7"),
        ('print(\'{"problem": "half\')', "exit status 0"),
        ("import time; time.sleep(600)", "hung when it was loaded and run once (no end within"),
        ("import os; os.kill(os.getpid(), 19)", "hung"),
    ],
)
def test_end_without_an_answer_is_a_crash_with_the_end_of_the_log(
    tmp_path: Path, monkeypatch, code: str, words: str
):
    (tmp_path / "build.log").write_text("".join(f"line {n}\n" for n in range(20)))
    monkeypatch.setattr(launch, "python_command", lambda _: (sys.executable, "-c", code))
    if words.startswith("hung"):
        monkeypatch.setattr(trial, "_LIMIT_S", 0.5)
    result = run_trial(TrialRequest(folder=str(tmp_path)))
    assert words in result.problem
    assert result.last_lines[-1] == "line 19"
    assert len(result.last_lines) == 8
