"""Shuffles, votes and reductions against a plain loop over lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.single import compute, few, kernel_text, run_text
from trtplug.emulator.run import Buffer


def source(mode: str, lane: int, b: int, c: int) -> int:
    """The lane that `lane` reads (PTX ISA, shfl.sync)."""
    clamp, segment = c & 31, c >> 8 & 31
    low, top = lane & segment, (lane & segment) | (clamp & ~segment)
    b &= 31
    got = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": low | (b & ~segment)}[mode]
    inside = got >= top if mode == "up" else got <= top
    return got if inside else lane


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@few
@given(b=st.integers(0, 31), width=st.sampled_from([32, 16, 8, 4]))
def test_shuffles(mode: str, b: int, width: int) -> None:
    x = np.arange(128, dtype=np.uint32) * 3
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    got = compute(f"shfl.sync.{mode}.b32 %d|%p1, %a0, {b}, {c}, -1;", [x], np.uint32)
    want = [x[i // 32 * 32 + source(mode, i % 32, b, c)] for i in range(128)]
    assert got.tolist() == want


def test_a_shuffle_by_lane() -> None:
    x = np.arange(64, dtype=np.uint32)
    lanes = np.random.default_rng(0).integers(0, 32, 64).astype(np.uint32)
    got = compute("shfl.sync.idx.b32 %d, %a0, %a1, 31, -1;", [x, lanes], np.uint32)
    assert got.tolist() == [i // 32 * 32 + lanes[i] for i in range(64)]


def test_votes() -> None:
    x = np.r_[np.arange(32), np.full(32, 50), np.full(64, 1)].astype(np.uint32)
    test = "setp.gt.u32 %p1, %a0, 15;\n"
    ballot = compute(f"{test}vote.sync.ballot.b32 %d, %p1, -1;", [x], np.uint32)
    assert ballot.tolist() == [0xFFFF0000] * 32 + [0xFFFFFFFF] * 32 + [0] * 64
    for mode, want in (("any", [1, 1, 0, 0]), ("all", [0, 1, 0, 0]), ("uni", [0, 1, 1, 1])):
        lines = f"{test}vote.sync.{mode}.pred %p2, %p1, -1;\nselp.u32 %d, 1, 0, %p2;"
        assert compute(lines, [x], np.uint32)[::32].tolist() == want


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or", "xor"])
def test_reductions(op: str) -> None:
    x = np.random.default_rng(0).integers(0, 2**32, 64).astype(np.uint32)
    kind = "b32" if op in ("and", "or", "xor") else "u32"
    got = compute(f"redux.sync.{op}.{kind} %d, %a0, -1;", [x], np.uint32)
    functions = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and}
    function = functions.get(op) or {"or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    assert got.tolist() == [int(function.reduce(x[i // 32 * 32 :][:32])) % 2**32 for i in range(64)]


def test_a_lane_that_is_elsewhere() -> None:
    body = """
    setp.lt.s32 %p1, %tid, 20;
    mov.u32 %t3, 0;
    activemask.b32 %t4;
    @!%p1 bra AWAY;
    shfl.sync.bfly.b32 %t3, %tid, 1, 31, MEMBERS;
    AWAY:
    mad.wide.s32 %w2, %tid, 4, %ptr0;
    st.global.u32 [%w2], %t3;
    """
    for members, want in (("-1", ["divergent_warp"]), ("0xFFFFF", [])):
        out = Buffer(name="out", data=np.zeros(32, np.uint32), role="output")
        run = run_text(kernel_text(body.replace("MEMBERS", members), 1), [out])
        assert [f.kind for f in run.findings] == want
        assert out.data.tolist() == [i ^ 1 if i < 20 else 0 for i in range(32)]
