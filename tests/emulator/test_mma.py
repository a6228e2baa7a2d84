"""Which `mma` run together, and how fragments become numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.single import kernel_text
from trtplug.emulator.parse import parse_module
from trtplug.emulator.ptx import Instruction
from trtplug.emulator.tensor_core import Product, grouped, rectangles, shape_of
from trtplug.errors import PtxError

OPCODE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def mma(c: str, a: str, b: str) -> str:
    sums, left, right = ("{" + ",".join(f"%{x}{i}" for i in range(n)) + "}" for x, n in (
        (c, 4), (a, 4), (b, 2)
    ))  # fmt: skip
    return f"{OPCODE} {sums}, {left}, {right}, {sums};\n"


def instructions(text: str) -> tuple[Instruction, ...]:
    body = parse_module(kernel_text(text, 0)).kernels["k"].body
    return tuple(x for x in body if isinstance(x, Instruction))[4:-1]


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (mma("c", "a", "b") + mma("d", "a", "e"), [2]),
        (mma("c", "a", "b") + "add.s32 %t1, %t2, %t3;" + mma("d", "a", "e"), [1, 2]),
        (mma("c", "a", "b") + mma("c", "x", "y"), [2]),
        (mma("c", "a", "b") + "mov.b32 %a0, %t1;" + mma("d", "a", "b"), [1, 1, 1]),
        (mma("c", "a", "b") + "mov.b32 %t1, %c0;" + mma("d", "a", "b"), [1, 1, 1]),
        (mma("c", "a", "b") + mma("d", "c", "b"), [1, 1]),
        (mma("c", "a", "b") + mma("a", "x", "y"), [1, 1]),
        (mma("c", "a", "b") + "@%p1 " + mma("d", "a", "b"), [1, 1]),
        (mma("c", "a", "b") + mma("d", "a", "b").replace("f16.f16", "bf16.bf16"), [1, 1]),
    ],
)
def test_groups(text: str, sizes: list[int]) -> None:
    assert [len(g) for g in grouped(instructions(text))] == sizes


def test_sums_that_start_anew_are_no_chain() -> None:
    """The second result takes the place of the first; added up, both would be in it."""
    text = (mma("c", "a", "b") + mma("c", "x", "y")).replace("%c3};", "%t1};")
    assert [len(g) for g in grouped(instructions(text))] == [1, 1]


def product(c: int, a: int, b: int) -> Product:
    return Product(results=(c,), a=(a,), b=(b,), start=(c,))


def test_a_grid_is_one_rectangle_with_its_steps() -> None:
    grid = [product(10 * i + j, 100 + i, 200 + j) for i in range(4) for j in range(8)]
    again = [product(10 * i + j, 300 + i, 400 + j) for i in range(4) for j in range(8)]
    (one,) = rectangles((*grid, *again))
    assert (len(one.a), len(one.b), len(one.a[0])) == (4, 8, 2)
    assert one.a[1] == ((101,), (301,))
    assert one.results[8 + 3] == (13,)


def test_what_is_no_grid_is_split() -> None:
    """Every product is in one part, under its own accumulators."""
    given = [product(1, 100, 200), product(2, 100, 201), product(3, 101, 200), product(4, 100, 200)]
    parts = rectangles(tuple(given))
    found = {
        results: (part.a[i // len(part.b)], part.b[i % len(part.b)])
        for part in parts
        for i, results in enumerate(part.results)
    }
    assert found == {p.results: ((p.a,), (p.b,)) for p in given}


@pytest.mark.parametrize("special", [False, True])
def test_every_fp16(special: bool) -> None:
    every = np.arange(65536, dtype=np.uint16)
    if not special:
        every = every[np.isfinite(every.view(np.float16))]
    decode = shape_of(instructions(mma("c", "a", "b"))[0]).decode_a
    with np.errstate(all="ignore"):
        got = decode(every.view(np.uint32)).ravel()
        want = every.view(np.float16).astype(np.float32)
    assert np.array_equal(got, want, equal_nan=True)
    assert np.array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32",
        "mma.sync.aligned.m16n8k16.row.col.f16.bf16.bf16.f16",
        "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    ],
)
def test_spellings_that_are_not_known(opcode: str) -> None:
    (ins,) = instructions(mma("c", "a", "b").replace(OPCODE, opcode))
    with pytest.raises(PtxError):
        shape_of(ins)
