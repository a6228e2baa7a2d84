"""Integer instructions against Python's own integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.single import compute, few

if TYPE_CHECKING:
    from collections.abc import Callable

EDGES32 = [0, 1, 2, 5, 31, 32, 33, 255, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFFFFFE]


def signed(x: int, bits: int) -> int:
    x %= 1 << bits
    return x - (1 << bits) if x >> (bits - 1) else x


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


words = st.lists(
    st.tuples(*[st.one_of(st.sampled_from(EDGES32), st.integers(0, 2**32 - 1))] * 3),
    min_size=8,
    max_size=40,
)

TWO: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "add.s32": (32, lambda a, b: a + b),
    "sub.s32": (32, lambda a, b: a - b),
    "mul.lo.s32": (32, lambda a, b: a * b),
    "mul.hi.s32": (32, lambda a, b: signed(a, 32) * signed(b, 32) >> 32),
    "mul.hi.u32": (32, lambda a, b: a * b >> 32),
    "and.b32": (32, lambda a, b: a & b),
    "or.b32": (32, lambda a, b: a | b),
    "xor.b32": (32, lambda a, b: a ^ b),
    "min.s32": (32, lambda a, b: min(signed(a, 32), signed(b, 32))),
    "max.u32": (32, max),
    "shl.b32": (32, lambda a, b: a << b if b < 32 else 0),
    "shr.u32": (32, lambda a, b: a >> min(b, 40)),
    "shr.s32": (32, lambda a, b: signed(a, 32) >> min(b, 40)),
    "mul.wide.u32": (64, lambda a, b: a * b),
    "mul.wide.s32": (64, lambda a, b: signed(a, 32) * signed(b, 32)),
    "div.u32": (32, lambda a, b: a // b if b else -1),
    "rem.u32": (32, lambda a, b: a % b if b else a),
    "div.s32": (32, lambda a, b: truncated(signed(a, 32), signed(b, 32)) if b else -1),
    "rem.s32": (
        32,
        lambda a, b: (
            signed(a, 32) - truncated(signed(a, 32), signed(b, 32)) * signed(b, 32) if b else a
        ),
    ),
}


def columns(rows: list[tuple[int, ...]], dtype: type) -> list[np.ndarray]:
    return [np.array(c, dtype) for c in zip(*rows, strict=True)]


@pytest.mark.parametrize("opcode", TWO)
@few
@given(rows=words)
def test_two_operands(opcode: str, rows: list[tuple[int, int, int]]) -> None:
    bits, reference = TWO[opcode]
    a, b, _ = columns(rows, np.uint32)
    got = compute(f"{opcode} %d, %a0, %a1;", [a, b], f"u{bits // 8}")
    assert got.tolist() == [reference(x, y) % (1 << bits) for x, y, _ in rows]


@few
@given(rows=words)
def test_upper_half_of_64_bits(rows: list[tuple[int, int, int]]) -> None:
    wide = [(a << 32 | b, b << 32 | c) for a, b, c in rows]
    a, b = columns(wide, np.uint64)
    unsigned = compute("mul.hi.u64 %d, %a0, %a1;", [a, b], np.uint64)
    assert unsigned.tolist() == [x * y >> 64 for x, y in wide]
    both = compute("mul.hi.s64 %d, %a0, %a1;", [a, b], np.uint64)
    assert both.tolist() == [(signed(x, 64) * signed(y, 64) >> 64) % 2**64 for x, y in wide]


def prmt(a: int, b: int, c: int) -> int:
    source = a | b << 32
    out = 0
    for i in range(4):
        pick = c >> 4 * i & 15
        byte = source >> 8 * (pick & 7) & 255
        out |= (255 * (byte >> 7) if pick & 8 else byte) << 8 * i
    return out


def lop3(a: int, b: int, c: int, table: int) -> int:
    return sum(
        (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
    )


def bfe(a: int, start: int, count: int) -> int:
    start, count = start & 255, count & 255
    return a >> start & ((1 << count) - 1) if start < 32 else 0


THREE: dict[str, Callable[[int, int, int], int]] = {
    "mad.lo.s32 %d, %a0, %a1, %a2": lambda a, b, c: a * b + c,
    "mad.hi.u32 %d, %a0, %a1, %a2": lambda a, b, c: (a * b >> 32) + c,
    "prmt.b32 %d, %a0, %a1, %a2": prmt,
    "lop3.b32 %d, %a0, %a1, %a2, 0x96": lambda a, b, c: a ^ b ^ c,
    "lop3.b32 %d, %a0, %a1, %a2, 202": lambda a, b, c: lop3(a, b, c, 202),
    "bfe.u32 %d, %a0, %a1, %a2": bfe,
    "shf.l.wrap.b32 %d, %a0, %a1, %a2": lambda a, b, c: (a | b << 32) << (c & 31) >> 32,
    "shf.r.clamp.b32 %d, %a0, %a1, %a2": lambda a, b, c: (a | b << 32) >> min(c, 32),
    "bfi.b32 %d, %a0, %a1, 5, 7": lambda a, b, _: b & ~(127 << 5) | (a & 127) << 5,
    "bfe.s32 %d, %a0, 4, 9": lambda a, _b, _c: signed(a >> 4, 9),
    "popc.b32 %d, %a0": lambda a, _b, _c: bin(a).count("1"),
    "clz.b32 %d, %a0": lambda a, _b, _c: 32 - a.bit_length(),
    "brev.b32 %d, %a0": lambda a, _b, _c: int(f"{a:032b}"[::-1], 2),
    "not.b32 %d, %a0": lambda a, _b, _c: ~a,
    "neg.s32 %d, %a0": lambda a, _b, _c: -a,
    "abs.s32 %d, %a0": lambda a, _b, _c: abs(signed(a, 32)),
}


@pytest.mark.parametrize("line", THREE)
@few
@given(rows=words)
def test_three_operands(line: str, rows: list[tuple[int, int, int]]) -> None:
    got = compute(f"{line};", columns(rows, np.uint32), np.uint32)
    assert got.tolist() == [THREE[line](*row) % 2**32 for row in rows]


def test_predicates_select() -> None:
    a = np.arange(100, dtype=np.int32)
    got = compute(
        "setp.lt.s32 %p1, %a0, 50;\nsetp.gt.and.s32 %p2|%p3, %a0, 20, %p1;\n"
        "selp.b32 %d, 1, 2, %p2;\n@%p3 mov.u32 %d, 3;\n@!%p1 add.s32 %d, %d, 10;",
        [a],
        np.int32,
    )
    want = [
        (1 if 20 < x < 50 else 3 if x <= 20 else 2) + (10 if x >= 50 else 0) for x in range(100)
    ]
    assert got.tolist() == want
