"""`cp.async`: lands when waited for, poisoned until then."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.checks import Checks
from trtplug.emulator.run import Buffer, Run

START = """
mov.u32 %t2, tile;
mad.lo.s32 %t2, %tid, 16, %t2;
mad.wide.s32 %w1, %tid, 16, %ptr0;
"""
COPY = "cp.async.cg.shared.global [%t2], [%w1], 16;\n"
COMMIT, WAIT = "cp.async.commit_group;\n", "cp.async.wait_group {};\n"
READ = """
ld.shared.v4.u32 {%t3, %t4, %t5, %t6}, [%t2+OFFSET];
mad.wide.s32 %w2, %tid, 16, %ptr1;
st.global.v4.u32 [%w2], {%t3, %t4, %t5, %t6};
"""


def copy(middle: str, checks: Checks | None = Checks()) -> tuple[Run, np.ndarray, np.ndarray]:  # noqa: B008
    data = np.arange(256, dtype=np.uint32)
    out = np.zeros(128, np.uint32)
    body = START + middle + ("" if "READ" in middle else READ)
    body = body.replace("READ", READ).replace("OFFSET", "0")
    variables = ".shared .align 16 .b8 tile[1024];"
    text = kernel_text(body, 2, variables=variables)
    buffers = [Buffer(name="in", data=data), Buffer(name="out", data=out, role="output")]
    return run_text(text, buffers, checks=checks), out, data


@pytest.mark.parametrize("end", [COMMIT + WAIT.format(0), "cp.async.wait_all;\n"])
def test_it_lands(end: str) -> None:
    run, out, data = copy(COPY + end)
    assert run.findings == ()
    assert out.tolist() == data[:128].tolist()


@pytest.mark.parametrize(
    "middle", [COPY, COPY + COMMIT, COPY + WAIT.format(0), COPY + COMMIT + WAIT.format(1)]
)
def test_what_is_not_waited_for_is_poison(middle: str) -> None:
    run, out, _ = copy(middle)
    assert [f.kind for f in run.findings] == ["unfinished_copy"]
    assert set(out.tolist()) == {0xFFFFFFFF}


def test_groups_land_in_order() -> None:
    second = "add.s32 %t2, %t2, 512;\nadd.s64 %w1, %w1, 512;\n" + COPY + COMMIT
    back = "add.s32 %t2, %t2, -512;\n"
    run, out, data = copy(COPY + COMMIT + second + WAIT.format(1) + back)
    assert run.findings == ()
    assert out.tolist() == data[:128].tolist()
    run, _, _ = copy(COPY + COMMIT + second + WAIT.format(1))
    assert [f.kind for f in run.findings] == ["unfinished_copy"]


@pytest.mark.parametrize("size", [16, 8, 4, 0])
def test_the_rest_is_zero(size: int) -> None:
    short = f"mov.u32 %t7, {size};\ncp.async.cg.shared.global [%t2], [%w1], 16, %t7;\n"
    run, out, data = copy(short + COMMIT + WAIT.format(0))
    assert run.findings == ()
    want = data[:128].reshape(32, 4) * (np.arange(4) < size // 4)
    assert out.tolist() == want.ravel().tolist()


def test_nothing_is_read_for_a_size_of_zero() -> None:
    far = "add.s64 %w1, %w1, 99999;\nmov.u32 %t7, 0;\n"
    run, out, _ = copy(
        far + "cp.async.cg.shared.global [%t2], [%w1], 16, %t7;\n" + COMMIT + WAIT.format(0)
    )
    assert run.findings == ()
    assert not out.any()


def test_lanes_apart_have_groups_of_their_own() -> None:
    """Half the lanes commit once more, so that waiting for all but one group lands theirs."""
    middle = COPY + COMMIT + "setp.lt.s32 %p1, %tid, 16;\n@!%p1 bra ON;\n" + COMMIT + "ON:\n"
    run, out, data = copy(middle + WAIT.format(1))
    assert [(f.kind, f.where, f.count) for f in run.findings] == [
        ("unfinished_copy", "block 0 thread 16", 16)
    ]
    assert out[:64].tolist() == data[:64].tolist()


def test_a_store_into_a_copy_is_a_race() -> None:
    run, _, _ = copy(COPY + "st.shared.u32 [%t2], %tid;\n" + COMMIT + WAIT.format(0))
    assert [f.kind for f in run.findings] == ["race"]


def test_numbers_only_lands_late_too() -> None:
    run, out, data = copy(COPY + COMMIT + WAIT.format(0), checks=None)
    assert (run.findings, out.tolist()) == ((), data[:128].tolist())
    _, out, _ = copy(COPY + COMMIT, checks=None)
    assert not out.any()
