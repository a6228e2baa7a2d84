"""Launches: what they compute, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.nvrtc import compile_module
from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.checks import Checks
from trtplug.emulator.parse import parse_module
from trtplug.emulator.run import Buffer, launch
from trtplug.errors import LaunchError, PtxError

VECTOR_ADD = r"""
extern "C" __global__ void add(const float* a, const float* b, int n, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
"""
SUM = r"""
extern "C" __global__ void sum(const float* x, int n, float* out) {
  __shared__ float part[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? x[i] : 0.f;
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int j = 0; j < blockDim.x / 32; ++j) s += part[j];
    out[blockIdx.x] = s / (1.f + expf(-s)) + tanhf(s) + erff(s) + log1pf(s);
  }
}
"""
INDICES = r"""
extern "C" __global__ void where(int* out) {
  int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int threads = 1000 * threadIdx.x + 10000 * threadIdx.y + 100000 * threadIdx.z;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z + threads;
}
"""


@pytest.mark.parametrize("sm", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("n", [1, 1000, 20000])
def test_vector_add(sm: str, n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n)).astype(np.float32)
    out = np.full(n, np.nan, np.float32)
    run = launch(
        compile_module(VECTOR_ADD, sm=sm),
        "add",
        (-(-n // 128), 1, 1),
        (128, 1, 1),
        0,
        [
            Buffer(name="a", data=a),
            Buffer(name="b", data=b),
            n,
            Buffer(name="out", data=out, role="output"),
        ],
        Checks(),
    )
    assert run.findings == ()
    assert np.array_equal(out, a + b)
    assert run.counters.global_ratio == 1.0


@pytest.mark.parametrize("sm", ["sm_80", "sm_120"])
def test_a_reduction_and_the_library(sm: str) -> None:
    import math

    x = np.random.default_rng(1).random(1000).astype(np.float32)
    out = np.zeros(8, np.float32)
    args = [Buffer(name="x", data=x), 1000, Buffer(name="out", data=out, role="output")]
    run = launch(compile_module(SUM, sm=sm), "sum", (8, 1, 1), (128, 1, 1), 0, args, Checks())
    assert run.findings == ()
    for i in range(8):
        s = float(x[i * 128 : (i + 1) * 128].sum(dtype=np.float64))
        want = s / (1 + math.exp(-s)) + math.tanh(s) + math.erf(s) + math.log1p(s)
        assert out[i] == pytest.approx(want, rel=1e-5)


def test_three_dimensions() -> None:
    grid, block = (3, 2, 2), (4, 3, 2)
    out = np.zeros((2, 2, 3, 2, 3, 4), np.int32)
    buffer = Buffer(name="out", data=out, role="output")
    run = launch(compile_module(INDICES), "where", grid, block, 0, [buffer], Checks())
    assert run.findings == ()
    scale = (100, 10, 1, 100000, 10000, 1000)
    want = sum(i * s for i, s in zip(np.indices(out.shape), scale, strict=True))
    assert np.array_equal(out, want)


def test_some_blocks_only() -> None:
    out = np.zeros(12 * 24, np.int32)
    buffer = Buffer(name="out", data=out, role="output")
    run = launch(
        compile_module(INDICES), "where", (3, 2, 2), (4, 3, 2), 0, [buffer], Checks(), blocks=[5, 0]
    )
    assert run.findings == ()
    assert run.counters.blocks == 2
    assert out[5 * 24] == 12


def test_an_unknown_instruction_names_its_line() -> None:
    text = kernel_text("tcgen05.alloc.b32 [%ptr0], 32;", 1)
    with pytest.raises(PtxError, match=r"tcgen05\.alloc") as caught:
        run_text(text, [Buffer(name="x", data=np.zeros(4, np.uint8))])
    assert "tcgen05" in text.split("\n")[caught.value.line - 1]


@pytest.mark.parametrize(
    "line",
    [
        "add.s32.wonder %t1, %t2, %t3;",
        "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%t1}, {%t1}, {%t1}, {%t1};",
        "setp.odd.s32 %p1, %t1, %t2;",
        "ld.global.u32.strange %t1, [%ptr0];",
        "cp.async.bulk.shared.global [%t1], [%ptr0], 16;",
        "bar.arrive 0, 64;",
        "cvt.rn.e4m3x2.f32 %t1, %t2, %t3;",
        "call foo;",
        "add.s32 %t1, %t2;",
        "add.s32 %nowhere, %t2, %t3;",
    ],
)
def test_nothing_is_skipped(line: str) -> None:
    with pytest.raises(PtxError):
        run_text(kernel_text(line, 1), [Buffer(name="x", data=np.zeros(4, np.uint8))])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernel": "other"}, "the module has k"),
        ({"args": []}, "0 arguments for 1"),
        ({"block": (2048, 1, 1)}, "1 to 1024"),
        ({"grid": (0, 1, 1)}, "grid"),
        ({"blocks": [7]}, "grid of 1"),
        ({"args": [Buffer(name="x", data=np.zeros((4, 4))[:, ::2])]}, "contiguous"),
    ],
)
def test_launches_that_do_not_fit(change: dict[str, object], says: str) -> None:
    good = {
        "kernel": "k",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_bytes": 0,
        "args": [Buffer(name="x", data=np.zeros(4))],
        "checks": Checks(),
    }
    module = parse_module(kernel_text("", 1))
    with pytest.raises(LaunchError, match=says):
        launch(module, **(good | change))  # type: ignore[arg-type]
