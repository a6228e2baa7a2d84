"""Loads, stores and atomics: every width and space, and what goes wrong in them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.single import compute, kernel_text, run_text
from trtplug.emulator.checks import Checks
from trtplug.emulator.run import Buffer, Run


def run_body(body: str, *buffers: Buffer, shared: int = 0, blocks: int = 1, **more: object) -> Run:
    variables = f".shared .align 16 .b8 tile[{shared}];" if shared else ""
    text = kernel_text(body, len(buffers), variables=variables)
    return run_text(text, buffers, blocks=blocks, **more)  # type: ignore[arg-type]


def kinds(run: Run) -> list[str]:
    return [f.kind for f in run.findings]


@pytest.mark.parametrize("shape", ["u8", "u16", "u32", "u64", "v2.u32", "v4.u32", "v2.u64"])
@pytest.mark.parametrize("space", ["global", "shared", "local", ""])
def test_there_and_back(shape: str, space: str) -> None:
    """Bytes through a space and back: [32 lanes] of 1 to 16 bytes."""
    element = int(shape[-2:].lstrip("u")) // 8 if shape[-1] != "8" else 1
    count = int(shape[1]) if shape.startswith("v") else 1
    size = element * count
    register = {1: "%h", 2: "%h", 4: "%x", 8: "%q"}[element]
    vector = ", ".join(f"{register}{i}" for i in range(count))
    vector = "{" + vector + "}" if count > 1 else vector
    there = {
        "shared": "mov.u64 %w1, tile;",
        "local": "mov.u64 %w1, stack;",
        "global": "mov.u64 %w1, %ptr1;",
        "": "mov.u64 %w1, tile;\ncvta.shared.u64 %w1, %w1;",
    }[space]
    own = "0" if space == "local" else "%tid"
    body = f"""
    .local .align 16 .b8 stack[16];
    mad.wide.s32 %w0, %tid, {size}, %ptr0;
    mad.wide.s32 %w2, %tid, {size}, %ptr2;
    {there}
    mov.u32 %t2, {own};
    mad.wide.s32 %w1, %t2, {size}, %w1;
    ld.global.{shape} {vector}, [%w0];
    st.{space}{"." if space else ""}{shape} [%w1], {vector};
    ld.{space}{"." if space else ""}{shape} {vector}, [%w1];
    st.global.{shape} [%w2], {vector};
    """
    registers = ".reg .b16 %h<4>;\n.reg .b32 %x<4>;\n.reg .b64 %q<4>;"
    text = kernel_text(body, 3, registers, ".shared .align 16 .b8 tile[512];")
    data = np.random.default_rng(0).integers(0, 256, 32 * size).astype(np.uint8)
    out = np.zeros_like(data)
    scratch = Buffer(name="scratch", data=np.zeros_like(data), role="both")
    buffers = [Buffer(name="in", data=data), scratch, Buffer(name="out", data=out, role="output")]
    assert run_text(text, buffers).findings == ()
    assert out.tolist() == data.tolist()


def test_signed_bytes_widen() -> None:
    x = np.arange(-64, 64, dtype=np.int8)
    out = np.zeros(32, np.int32)
    body = """
    cvt.s64.s32 %w1, %tid;
    add.s64 %w1, %w1, %ptr0;
    ld.global.s8 %t2, [%w1];
    mad.wide.s32 %w2, %tid, 4, %ptr1;
    st.global.u32 [%w2], %t2;
    """
    buffers = Buffer(name="in", data=x), Buffer(name="out", data=out, role="output")
    assert run_body(body, *buffers).findings == ()
    assert out.tolist() == x[:32].tolist()


def one_word(n: int = 32) -> tuple[Buffer, Buffer]:
    data = np.arange(n, dtype=np.uint32)
    return (
        Buffer(name="in", data=data),
        Buffer(name="out", data=np.zeros(n, np.uint32), role="output"),
    )


STORE = "mad.wide.s32 %w2, %tid, 4, %ptr1;\nst.global.u32 [%w2], %t2;"


@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        ("mad.wide.s32 %w1, %tid, 4, %ptr0;\nld.global.u32 %t2, [%w1+4];", "out_of_bounds", "128"),
        ("mad.wide.s32 %w1, %tid, 4, %ptr0;\nld.global.u32 %t2, [%w1+-4];", "out_of_bounds", "-4"),
        ("mov.u64 %w1, 0;\nld.global.u32 %t2, [%w1];", "out_of_bounds", "address 0x0"),
        ("ld.global.u32 %t2, [%ptr0+2];", "misaligned", "in+2"),
        ("ld.global.v2.u32 {%t2, %t3}, [%ptr0+4];", "misaligned", "in+4"),
        ("mov.u32 %t3, tile;\nld.shared.u32 %t2, [%t3+64];", "out_of_bounds", "byte 64"),
        ("mov.u32 %t3, tile;\nld.shared.u32 %t2, [%t3+2];", "misaligned", "byte 2"),
        ("mov.u32 %t3, tile;\nld.shared.u32 %t2, [%t3];", "uninitialised", "byte 0"),
        ("ld.global.u32 %t2, [%ptr1];", "uninitialised", "out"),
        ("mov.u32 %t2, 1;\nst.global.u32 [%ptr0], %t2;", "write_to_input", "in"),
    ],
)
def test_faults(body: str, kind: str, says: str) -> None:
    run = run_body(f"{body}\n{STORE}", *one_word(), shared=64)
    assert kinds(run) == [kind]
    assert says in run.findings[0].detail


def test_a_masked_lane_is_not_at_fault() -> None:
    body = f"""
    mov.u32 %t2, 5;
    setp.lt.s32 %p1, %tid, 31;
    mad.wide.s32 %w1, %tid, 4, %ptr0;
    @%p1 ld.global.u32 %t2, [%w1+4];
    {STORE}
    """
    given, out = one_word()
    assert run_body(body, given, out).findings == ()
    assert out.data.tolist() == [*range(1, 32), 5]


def test_only_the_lanes_at_fault_are_lost() -> None:
    body = "mad.wide.s32 %w1, %tid, 4, %ptr0;\nld.global.u32 %t2, [%w1+8];"
    given, out = one_word()
    run = run_body(f"{body}\n{STORE}", given, out)
    assert [(f.kind, f.where, f.count) for f in run.findings] == [
        ("out_of_bounds", "block 0 thread 30", 2)
    ]
    assert out.data.tolist() == [*range(2, 32), 0, 0]


def test_double_and_missing_writes() -> None:
    halved = "shr.u32 %t3, %tid, 1;\nmad.wide.s32 %w2, %t3, 4, %ptr1;\nst.global.u32 [%w2], %tid;"
    run = run_body(halved, *one_word())
    assert kinds(run) == ["unwritten", "double_write"]
    assert (run.findings[0].count, run.findings[1].count) == (16, 16)
    again = f"mov.u32 %t2, 1;\n{STORE}\nst.global.u32 [%w2], %t2;"
    assert kinds(run_body(again, *one_word())) == ["double_write"]
    assert kinds(run_body(f"mov.u32 %t2, 1;\n{STORE}", *one_word(), blocks=2)) == ["double_write"]


def test_numbers_only_still_looks_at_bounds() -> None:
    body = f"ld.global.u32 %t2, [%ptr0+128];\n{STORE}"
    assert kinds(run_body(body, *one_word(), checks=None)) == ["out_of_bounds"]


def test_atomics_are_in_order() -> None:
    body = f"""
    mov.u32 %t3, tile;
    mov.u32 %t4, 0;
    setp.eq.s32 %p1, %tid, 0;
    @%p1 st.shared.u32 [%t3], %t4;
    bar.sync 0;
    atom.shared.add.u32 %t2, [%t3], 2;
    {STORE}
    """
    _, out = one_word()
    run = run_body(body, one_word()[0], out, shared=16)
    assert run.findings == ()
    assert out.data.tolist() == [2 * i for i in range(32)]


@pytest.mark.parametrize("op", ["min", "max", "or", "exch", "cas"])
def test_other_atomics(op: str) -> None:
    operands = "%t2, %t3" if op == "cas" else "%t2"
    body = f"mov.u32 %t3, 9;\nadd.s32 %t2, %tid, 1;\natom.global.{op}.b32 %t4, [%ptr0], {operands};"
    if op in ("min", "max"):
        body = body.replace("b32 %t4", "u32 %t4")
    cell = np.array([5], np.uint32)
    run_body(body, Buffer(name="cell", data=cell, role="both"))
    assert cell[0] == {"min": 1, "max": 32, "or": 63, "exch": 32, "cas": 9}[op]


def test_constants_and_tables() -> None:
    variables = ".global .align 4 .b8 table[8] = {1, 0, 0, 0, 7};\n.const .u32 one = 3;"
    body = """
    mov.u64 %w1, table;
    ld.global.u32 %t2, [%w1+4];
    mov.u64 %w1, one;
    ld.const.u32 %t3, [%w1];
    ld.const.u32 %t4, [one];
    add.s32 %t2, %t2, %t3;
    add.s32 %t2, %t2, %t4;
    mad.wide.s32 %w2, %tid, 4, %ptr0;
    st.global.u32 [%w2], %t2;
    """
    out = np.zeros(32, np.uint32)
    buffer = Buffer(name="out", data=out, role="output")
    assert run_text(kernel_text(body, 1, variables=variables), [buffer]).findings == ()
    assert set(out.tolist()) == {13}


def test_packing() -> None:
    x = np.arange(50, dtype=np.uint32) * 70001
    body = ".reg .b16 low;\n.reg .b16 high;\nmov.b32 {low, high}, %a0;\nmov.b32 %d, {high, low};"
    got = compute(body, [x], np.uint32)
    assert got.tolist() == ((x >> 16) | (x << 16)).tolist()


def test_every_check_can_be_left_out() -> None:
    body = "mov.u32 %t3, tile;\nld.shared.u32 %t2, [%t3];"
    off = Checks(memory=False, races=False, access=False)
    run = run_body(f"{body}\n{STORE}", *one_word(), shared=64, checks=off)
    assert run.findings == ()
    assert run.counters.shared == ()
