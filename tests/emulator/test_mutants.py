"""A GEMM as the kernels are built, clean; and each fault put into it, caught."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.gemm import run_gemm


@pytest.mark.parametrize(
    ("sm", "m", "n", "k", "tile", "stages"),
    [
        ("sm_80", 100, 72, 80, (64, 64), 3),
        ("sm_120", 130, 136, 72, (128, 64), 2),
        ("sm_90", 33, 8, 8, (64, 64), 4),
    ],
)
def test_clean(sm: str, m: int, n: int, k: int, tile: tuple[int, int], stages: int) -> None:
    result = run_gemm(m=m, n=n, k=k, tile=tile, stages=stages, sm=sm)
    assert result.run.findings == ()
    assert result.error < 1e-3
    assert result.run.counters.shared_ratio == 1.0


# fault: what it is found as, beside the numbers.
CAUGHT = {
    "NO_BARRIER": "race",
    "LATE_WAIT": "unfinished_copy",
    "NO_COMMIT": "unfinished_copy",
    "WRONG_STAGE": "unfinished_copy",
    "EARLY_FETCH": "race",
    "NO_EPILOGUE_BARRIER": "race",
    "NO_STORE_BARRIER": "race",
    "NO_MASK": "out_of_bounds",
    "NO_TAIL": "out_of_bounds",
    "DIVERGENT_BARRIER": "divergent_barrier",
    "HALF_OUTPUT": "unwritten",
    "TWICE": "double_write",
}


@pytest.mark.parametrize("fault", CAUGHT)
def test_caught(fault: str) -> None:
    result = run_gemm(fault, k=200)
    assert CAUGHT[fault] in result.kinds


def test_lockstep_numbers_alone_do_not_see_a_race() -> None:
    """Why the check is there: without the barrier the numbers are still right."""
    assert run_gemm("NO_EPILOGUE_BARRIER", k=200).error < 1e-3


def test_a_missing_swizzle_shows_in_the_waves() -> None:
    result = run_gemm("NO_SWIZZLE")
    assert result.run.findings == ()
    loads = [c for c in result.run.counters.shared if c.opcode.startswith("ldmatrix")]
    assert {c.ratio for c in loads} == {4.0}


def test_a_wrong_bias_shows_in_the_numbers() -> None:
    result = run_gemm("WRONG_BIAS")
    assert result.run.findings == ()
    assert result.error > 1e-2


def test_numbers_only_gives_the_same_numbers() -> None:
    assert run_gemm(checks=None).error == run_gemm().error
    assert np.isfinite(run_gemm(checks=None).error)
