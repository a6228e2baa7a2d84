"""`mma` and `ldmatrix` against matrices laid out as the PTX manual draws them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.run import Buffer

# kind: NumPy dtype, elements of a register.
KINDS = {
    "f16": (np.dtype(np.float16), 2),
    "bf16": (np.dtype(ml_dtypes.bfloat16), 2),
    "tf32": (np.dtype(np.float32), 1),
    "s8": (np.dtype(np.int8), 4),
}


def fragments(matrix: np.ndarray, rows: int, per: int) -> np.ndarray:
    """[rows, k] as registers [32 lanes, registers]: one lane and register after the other."""
    k = matrix.shape[1]
    out = np.zeros((32, rows // 8 * (k // (4 * per))), np.uint32)
    for lane in range(32):
        g, t = divmod(lane, 4)
        for r in range(out.shape[1]):
            row = g + 8 * (r % (rows // 8))
            at = 4 * per * (r // (rows // 8)) + t * per
            out[lane, r] = np.ascontiguousarray(matrix[row, at : at + per]).view(np.uint32)[0]
    return out


def tf32(x: np.ndarray) -> np.ndarray:
    return (x.view(np.uint32) & 0xFFFFE000).view(np.float32)


@pytest.mark.parametrize(
    ("kind", "k", "sums"),
    [
        ("f16", 8, "f32"),
        ("f16", 16, "f32"),
        ("f16", 16, "f16"),
        ("bf16", 8, "f32"),
        ("bf16", 16, "f32"),
        ("tf32", 4, "f32"),
        ("tf32", 8, "f32"),
        ("s8", 16, "s32"),
        ("s8", 32, "s32"),
    ],
)
def test_mma(kind: str, k: int, sums: str) -> None:
    dtype, per = KINDS[kind]
    rng = np.random.default_rng(k)
    if kind == "s8":
        a, b = (rng.integers(-128, 128, (n, k)).astype(dtype) for n in (16, 8))
    else:
        a, b = (rng.standard_normal((n, k)).astype(np.float32).astype(dtype) for n in (16, 8))
    if kind == "tf32":
        a, b = tf32(a), tf32(b)
    start = rng.integers(-9, 9, (16, 8)).astype(np.float64)
    fa, fb = fragments(a, 16, per), fragments(b, 8, per)
    if sums == "f16":
        fc = fragments(start.astype(np.float16), 16, 2)
    else:
        number = np.int32 if sums == "s32" else np.float32
        fc = start.reshape(2, 8, 4, 2).transpose(1, 2, 0, 3).reshape(32, 4).astype(number)
        fc = fc.view(np.uint32)
    counts = [x.shape[1] for x in (fa, fb, fc)]
    names = [[f"%{n}{i}" for i in range(c)] for n, c in zip("abc", counts, strict=True)]
    loads = "".join(
        f"mad.wide.s32 %w1, %tid, {4 * count}, %ptr{i};\n"
        + "".join(f"ld.global.u32 {n}, [%w1+{4 * j}];\n" for j, n in enumerate(group))
        for i, (group, count) in enumerate(zip(names, counts, strict=True))
    )
    va, vb, vc = ("{" + ", ".join(group) + "}" for group in names)
    body = (
        f"{loads}mma.sync.aligned.m16n8k{k}.row.col.{sums}.{kind}.{kind}.{sums} "
        f"{vc}, {va}, {vb}, {vc};\nmad.wide.s32 %w1, %tid, {4 * counts[2]}, %ptr3;\n"
        + "".join(f"st.global.u32 [%w1+{4 * j}], {n};\n" for j, n in enumerate(names[2]))
    )
    out = np.zeros((32, counts[2]), np.uint32)
    buffers = [Buffer(name=n, data=x) for n, x in zip("abc", (fa, fb, fc), strict=True)]
    buffers.append(Buffer(name="d", data=out, role="output"))
    registers = ".reg .b32 %a<9>;\n.reg .b32 %b<9>;\n.reg .b32 %c<9>;"
    run = run_text(kernel_text(body, 4, registers), buffers)
    assert run.findings == ()
    assert run.counters.multiply_adds == 16 * 8 * k
    want = start + a.astype(np.float64) @ b.astype(np.float64).T
    if sums == "f16":
        got = out.T.copy().view(np.float16).reshape(2, 8, 4, 2).reshape(16, 8)
        assert np.allclose(got.astype(float), want, rtol=2e-3, atol=2e-3)
        return
    view = out.view(np.int32 if sums == "s32" else np.float32)
    got = view.reshape(8, 4, 2, 2).transpose(2, 0, 1, 3).reshape(16, 8)
    assert np.allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", [False, True])
def test_ldmatrix(count: int, turned: bool) -> None:
    """Matrix j is rows 8 j to 8 j + 7 of a tile of [32, 8] fp16."""
    tile = np.random.default_rng(0).integers(0, 65536, (32, 8)).astype(np.uint16)
    names = ", ".join(f"%r{i}" for i in range(count))
    stores = "".join(f"st.global.u32 [%w2+{4 * i}], %r{i};\n" for i in range(count))
    body = f"""
    mad.wide.s32 %w1, %tid, 16, %ptr0;
    ld.global.v4.u32 {{%t2, %t3, %t4, %t5}}, [%w1];
    mov.u32 %t6, tile;
    mad.lo.s32 %t6, %tid, 16, %t6;
    st.shared.v4.u32 [%t6], {{%t2, %t3, %t4, %t5}};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x{count}{".trans" if turned else ""}.shared.b16 {{{names}}}, [%t6];
    mad.wide.s32 %w2, %tid, {4 * count}, %ptr1;
    {stores}"""
    out = np.zeros((32, count), np.uint32)
    buffers = [Buffer(name="in", data=tile), Buffer(name="out", data=out, role="output")]
    text = kernel_text(body, 2, ".reg .b32 %r<4>;", ".shared .align 16 .b8 tile[512];")
    run = run_text(text, buffers)
    assert run.findings == ()
    got = out.T.copy().view(np.uint16).reshape(count, 8, 8)
    want = tile.reshape(4, 8, 8)[:count]
    assert np.array_equal(got, want.transpose(0, 2, 1) if turned else want)
    loaded = next(c for c in run.counters.shared if c.opcode.startswith("ldmatrix"))
    assert (loaded.units, loaded.ideal) == (count, count)


def test_a_warp_must_be_whole() -> None:
    body = """
    mov.u32 %t2, 0;
    setp.lt.s32 %p1, %tid, 8;
    @%p1 bra ON;
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
      {%t3,%t4,%t5,%t6}, {%t2,%t2}, {%t2}, {%t2,%t2,%t2,%t2};
    ON:
    """
    run = run_text(kernel_text(body, 0), [])
    assert [f.kind for f in run.findings] == ["divergent_warp"]


LOOP = """
mov.f32 %c0, 0f00000000;
mov.f32 %c1, 0f00000000;
mov.f32 %c2, 0f00000000;
mov.f32 %c3, 0f00000000;
mov.b32 %one, 0x3C003C00;
shr.u32 %t2, %tid, 5;
START
AGAIN:
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  {%c0, %c1, %c2, %c3}, {%one, %one, %one, %one}, {%one, %one}, {%c0, %c1, %c2, %c3};
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  {%c0, %c1, %c2, %c3}, {%one, %one, %one, %one}, {%one, %one}, {%c0, %c1, %c2, %c3};
add.s32 %t2, %t2, -1;
setp.ge.s32 %p1, %t2, 0;
@%p1 bra AGAIN;
DONE:
mad.wide.s32 %w1, %gid, 16, %ptr0;
st.global.v4.f32 [%w1], {%c0, %c1, %c2, %c3};
"""


def run_loop(start: str) -> np.ndarray:
    """Warp w of 4 adds 2 * 16 ones w + 1 times, in 3 blocks."""
    registers = ".reg .f32 %c<4>;\n.reg .b32 %one;"
    text = kernel_text(LOOP.replace("START", start), 1, registers)
    out = np.zeros((3, 4, 32, 4), np.float32)
    buffer = Buffer(name="out", data=out, role="output")
    assert run_text(text, [buffer], threads=128, blocks=3).findings == ()
    assert (out == out[:, :, :1, :1]).all()
    return out[:, :, 0, 0]


def test_warps_that_leave_a_loop_early_keep_their_sums() -> None:
    assert run_loop("").tolist() == [[32, 64, 96, 128]] * 3


def test_warps_that_stay_out_keep_what_they_had() -> None:
    skip = "mov.f32 %c0, 0f3F800000;\nmov.f32 %c1, %c0;\nmov.f32 %c2, %c0;\nmov.f32 %c3, %c0;\n"
    skip += "setp.eq.s32 %p2, %t2, 1;\n@%p2 bra DONE;"
    assert run_loop(skip).tolist() == [[33, 1, 97, 129]] * 3


def test_blocks_that_leave_a_loop_early() -> None:
    by_block = "mov.u32 %t2, %ctaid.x;"
    assert run_loop(by_block).tolist() == [[32] * 4, [64] * 4, [96] * 4]


def test_sums_that_are_read_between() -> None:
    double = "add.f32 %c0, %c0, %c0;\nadd.f32 %c1, %c1, %c1;\nadd.f32 %c2, %c2, %c2;\n"
    double += "add.f32 %c3, %c3, %c3;\nadd.s32 %t2, %t2, -1;\nsetp.ge"
    text = LOOP.replace("START", "").replace("add.s32 %t2, %t2, -1;\nsetp.ge", double)
    registers = ".reg .f32 %c<4>;\n.reg .b32 %one;"
    out = np.zeros((4, 32, 4), np.float32)
    buffer = Buffer(name="out", data=out, role="output")
    assert run_text(kernel_text(text, 1, registers), [buffer], threads=128).findings == ()
    assert out[:, 0, 0].tolist() == [64, 192, 448, 960]


def test_a_start_in_other_registers() -> None:
    text = LOOP.replace("START", "").replace(
        "{%c0, %c1, %c2, %c3};", "{%two, %two, %two, %two};", 1
    )
    text = text.replace("mov.b32 %one", "mov.f32 %two, 0f40000000;\nmov.b32 %one")
    registers = ".reg .f32 %c<4>;\n.reg .b32 %one;\n.reg .f32 %two;"
    out = np.zeros((4, 32, 4), np.float32)
    buffer = Buffer(name="out", data=out, role="output")
    assert run_text(kernel_text(text, 1, registers), [buffer], threads=128).findings == ()
    assert out[:, 5, 2].tolist() == [34] * 4
