"""A matrix product with everything the CBR kernels use, and faults that can be put into it.

C[m, n] = relu(sum_k A[m, k] B[n, k] + bias[n]), fp16 with fp32 sums: a cp.async pipeline, swizzled
tiles, ldmatrix, mma, an epilogue staged through shared memory. One macro seeds one fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.emulator.nvrtc import compile_module
from trtplug.emulator.checks import Checks
from trtplug.emulator.run import Buffer, Run, launch

SOURCE = Path(__file__).with_name("gemm.cu").read_text()


@dataclass(frozen=True, kw_only=True)
class Result:
    run: Run
    error: float
    kinds: frozenset[str]


def run_gemm(
    *defines: str,
    m: int = 100,
    n: int = 72,
    k: int = 80,
    tile: tuple[int, int] = (64, 64),
    stages: int = 3,
    sm: str = "sm_80",
    checks: Checks | None = Checks(),  # noqa: B008
    seed: int = 0,
) -> Result:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((n, k)).astype(np.float16)
    bias = rng.standard_normal(n).astype(np.float32)
    out = np.full((m, n), np.nan, np.float16)
    bm, bn = tile
    module = compile_module(SOURCE, f"BM={bm}", f"BN={bn}", f"STAGES={stages}", *defines, sm=sm)
    run = launch(
        module,
        "gemm",
        (-(-m // bm), -(-n // bn), 1),
        (128, 1, 1),
        max(stages * (bm + bn) * 64, bm * (bn * 2 + 16)),
        [
            Buffer(name="a", data=a),
            Buffer(name="b", data=b),
            Buffer(name="bias", data=bias),
            m,
            n,
            k,
            Buffer(name="out", data=out, role="output"),
        ],
        checks,
    )
    want = np.maximum(a.astype(np.float64) @ b.astype(np.float64).T + bias, 0)
    error = float(np.linalg.norm(out.astype(np.float64) - want) / np.linalg.norm(want))
    return Result(run=run, error=error, kinds=frozenset(f.kind for f in run.findings))
