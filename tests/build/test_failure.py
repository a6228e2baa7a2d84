"""A failed build as an error: each known reason has its advice."""

from __future__ import annotations

from typing import get_args

import pytest

from trtplug.backends.backend import Outcome, OutcomeStatus
from trtplug.build.finish import advice_for, failure_of
from trtplug.build.run import unsupported
from trtplug.errors import PluginNameClashError, error_to_plain
from trtplug.target import Sm

OUTCOME = {
    "target": "rtx-1.7:sm_75",
    "folder": "/nowhere",
    "how": "",
    "warnings": (),
    "seconds": 1.0,
    "peak_bytes": 3 << 20,
    "builder_version": "",
    "library": "",
    "engine_sha256": "",
    "aslr_off": True,
}


def failure(status: str, *reasons: str, how: str = "", **limits: object):
    outcome = Outcome(**{**OUTCOME, "status": status, "reasons": reasons, "how": how})
    return failure_of(outcome, **{"timeout_s": None, "memory_bytes": None, **limits})


@pytest.mark.parametrize("status", [s for s in get_args(OutcomeStatus) if s != "built"])
def test_every_status_has_an_error_that_names_the_target(status: str):
    error = failure(status, "reason", how="signal SIGSEGV")
    assert "rtx-1.7:sm_75" in error.message
    assert error.exit_status == 3


def test_fp32_gemm_on_turing_asks_for_fp16():
    # Word for word as TensorRT-RTX 1.7 says it.
    reason = (
        "IBuilder::buildSerializedNetwork: Error Code 1: Myelin ([pass.cpp:337: "
        "check_turing_op_compatibility] Cannot compile operation 'matmul0' for Turing (SM75): "
        "FP32 GEMM is not supported. In compileGraph)"
    )
    error = failure("failed", reason)
    assert error.code == "build-failed"
    assert "--precision fp16" in error.hint
    assert "matmul0" in error.message


def test_advice_for_what_is_known_and_none_for_what_is_not():
    assert "evaluation mode" in advice_for(["node 'bn': !isTraining && \"training_mode == 1\""])
    assert "axes of one name" in advice_for(["contradictory IOptimizationProfile constraints"])
    assert advice_for(["something new"]) == ""
    assert advice_for([]) == ""


def test_an_error_that_the_child_names_is_told_as_it_is():
    clash = PluginNameClashError(ours="trtplug::CBR version 1", other="a creator of class Other")
    given = {**OUTCOME, "status": "refused", "reasons": (), "error": error_to_plain(clash)}
    error = failure_of(Outcome(**given), timeout_s=None, memory_bytes=None)
    assert (error.code, error.message) == ("plugin-name-clash", clash.message)


def test_limits_are_named():
    assert "time limit of 2.5 s" in failure("timeout", timeout_s=2.5).message
    error = failure("memory", memory_bytes=2 << 20)
    assert "limit of 2 MiB (it held 3 MiB)" in error.message
    assert "killed from outside at 3 MiB" in failure("memory", how="killed").message


def test_crash_shows_how_and_the_last_lines():
    error = failure("crashed", "[V] one", "[V] two", how="signal SIGSEGV")
    assert "(signal SIGSEGV)" in error.message
    assert error.message.endswith("  [V] one\n  [V] two")


def test_unsupported_says_who_could():
    error = unsupported("rtx-1.7:sm_90", Sm(90), "rtx", (Sm(86), Sm(89)))
    assert "it builds for sm_86, sm_89" in error.message
    assert "TensorRT (enterprise) on a machine with an sm_90 GPU" in error.hint
