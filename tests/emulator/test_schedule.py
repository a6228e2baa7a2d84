"""Divergence, barriers, livelock."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.nvrtc import compile_module
from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.checks import Checks
from trtplug.emulator.run import Buffer, Run, launch


def run_body(
    body: str, blocks: int = 1, threads: int = 64, **checks: int
) -> tuple[Run, np.ndarray]:
    out = np.zeros(blocks * threads, np.uint32)
    store = "\nOUT:\nmad.wide.s32 %w2, %gid, 4, %ptr0;\nst.global.u32 [%w2], %t5;\n"
    buffer = Buffer(name="out", data=out, role="output")
    text = kernel_text("mov.u32 %t5, 0;\n" + body + store, 1)
    return run_text(text, [buffer], blocks=blocks, threads=threads, checks=Checks(**checks)), out


def test_loops_of_different_length() -> None:
    body = """
    mov.u32 %t2, %gid;
    setp.eq.s32 %p1, %t2, 0;
    @%p1 bra DONE;
    AGAIN:
    add.s32 %t5, %t5, %t2;
    add.s32 %t2, %t2, -1;
    setp.ne.s32 %p1, %t2, 0;
    @%p1 bra AGAIN;
    DONE:
    """
    run, out = run_body(body, blocks=3)
    assert run.findings == ()
    assert out.tolist() == [n * (n + 1) // 2 for n in range(192)]
    assert run.counters.by_opcode["bar.sync"] if "bar" in body else True


SOURCE = r"""
extern "C" __global__ void k(const int* x, int n, int* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i], steps = 0;
  while (v != 1) {
    if (v % 2) { v = 3 * v + 1; if (v > 100000000) break; }
    else v /= 2;
    switch (v % 5) {
      case 0: steps += 1; break;
      case 1: continue;
      case 2: steps += 2; break;
      default: steps += 3;
    }
  }
  y[i] = steps;
}
"""


def steps_of(v: int) -> int:
    steps = 0
    while v != 1:
        if v % 2:
            v = 3 * v + 1
            if v > 100000000:
                break
        else:
            v //= 2
        steps += (1, 0, 2, 3, 3)[v % 5]
    return steps


@pytest.mark.parametrize("sm", ["sm_75", "sm_120"])
def test_tangled_control_flow(sm: str) -> None:
    x = np.arange(1, 302, dtype=np.int32)
    y = np.zeros(301, np.int32)
    args = [Buffer(name="x", data=x), 301, Buffer(name="y", data=y, role="output")]
    run = launch(compile_module(SOURCE, sm=sm), "k", (3, 1, 1), (128, 1, 1), 0, args, Checks())
    assert run.findings == ()
    assert y.tolist() == [steps_of(int(v)) for v in x]


def test_a_wide_register_that_only_some_lanes_ever_write() -> None:
    """Once a crash: what it held before was a placeholder of 32 bits."""
    body = """
    setp.lt.s32 %p1, %tid, 32;
    @%p1 bra LOW;
    mov.u32 %t5, 7;
    bra OUT;
    LOW:
    mul.wide.s32 %w1, %tid, 3;
    cvt.u32.u64 %t5, %w1;
    """
    run, out = run_body(body)
    assert run.findings == ()
    assert out.tolist() == [3 * n for n in range(32)] + [7] * 32


def test_a_short_last_warp() -> None:
    run, out = run_body("bar.sync 0;\nmov.u32 %t5, %ntid.x;", threads=40)
    assert run.findings == ()
    assert set(out.tolist()) == {40}


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("setp.lt.s32 %p1, %tid, 32;\n@%p1 bra ON;\nbar.sync 0;\nON:\nbar.sync 0;", 1),
        ("setp.lt.s32 %p1, %tid, 32;\n@%p1 bra ON;\nbar.sync 0;\nbra OUT;\nON:\nbar.sync 0;", 1),
        ("setp.lt.s32 %p1, %tid, 5;\n@%p1 ret;\nbar.sync 0;", 1),
        ("setp.lt.s32 %p1, %gid, 64;\n@%p1 bra ON;\nbar.sync 0;\nON:\nbar.sync 0;", 0),
        ("setp.lt.s32 %p1, %gid, 64;\n@%p1 bra OUT;\nbar.sync 0;", 0),
    ],
)
def test_barriers_are_for_all_threads_of_a_block(body: str, kinds: int) -> None:
    run, _ = run_body(body, blocks=2)
    found = [f.kind for f in run.findings if f.kind != "unwritten"]
    assert found == ["divergent_barrier"] * kinds or (kinds and set(found) == {"divergent_barrier"})


def test_a_barrier_for_some_threads() -> None:
    body = "setp.ge.s32 %p1, %tid, 32;\n@%p1 bra ON;\nbar.sync 1, 32;\nON:\nbar.sync 0;"
    assert run_body(body)[0].findings == ()
    run, _ = run_body(body.replace("1, 32", "1, 64"))
    assert {f.kind for f in run.findings} == {"divergent_barrier", "unwritten"}


def test_a_state_that_comes_again_is_a_livelock() -> None:
    body = "AGAIN:\nld.global.u32 %t2, [%ptr0];\nsetp.eq.s32 %p1, %tid, %tid;\n@%p1 bra AGAIN;"
    run, _ = run_body(body, memory=False)  # type: ignore[arg-type]
    assert [f.kind for f in run.findings] == ["livelock"]
    assert "nothing changed" in run.findings[0].detail


def test_too_many_steps() -> None:
    body = "AGAIN:\nadd.s32 %t5, %t5, 1;\nsetp.eq.s32 %p1, %tid, %tid;\n@%p1 bra AGAIN;"
    run, _ = run_body(body, steps=3000)
    assert "livelock" in {f.kind for f in run.findings}


def test_a_long_loop_is_none() -> None:
    body = "AGAIN:\nadd.s32 %t5, %t5, 1;\nsetp.lt.s32 %p1, %t5, 5000;\n@%p1 bra AGAIN;"
    run, out = run_body(body, threads=32)
    assert (run.findings, set(out.tolist())) == ((), {5000})
