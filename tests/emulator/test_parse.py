"""PTX as NVRTC writes it, and what is refused with its line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.single import HEADER, few, kernel_text
from trtplug.emulator.decode import decode
from trtplug.emulator.parse import parse_module
from trtplug.emulator.ptx import Address, Immediate, Instruction, Label, Name, Vector
from trtplug.errors import PtxError


def only(line: str, registers: str = "") -> Instruction:
    module = parse_module(kernel_text(line, 0, registers))
    body = module.kernels["k"].body
    found = [x for x in body if isinstance(x, Instruction)]
    return found[4]


def test_header_and_declarations() -> None:
    module = parse_module(
        HEADER + "// a comment\n"
        ".global .align 4 .b8 table[8] = {1, 0, 0xFF};\n"
        ".extern .shared .align 128 .b8 smem[];\n"
        ".const .f32 one = 0f3F800000;\n"
        ".visible .entry k(\n .param .u64 .ptr .align 1 k_0,\n .param .u32 k_1\n)\n"
        ".maxntid 128, 1, 1\n.minnctapersm 2\n{\n.reg .b32 %r<5>;\n.reg .pred %p<2>;\n"
        ".shared .align 16 .b8 tile[64];\n.loc 1 2 3\nret;\n}\n"
    )
    assert (module.version, module.target) == ("7.0", "sm_80")
    table, smem, one = module.variables
    assert (table.size, table.initial, table.space) == (8, b"\x01\x00\xff", "global")
    assert smem.size is None
    assert one.initial == bytes.fromhex("0000803f")
    kernel = module.kernels["k"]
    assert [(p.name, p.size) for p in kernel.parameters] == [("k_0", 8), ("k_1", 4)]
    assert kernel.registers == {"%r*": 32, "%p*": 1}
    assert kernel.variables[0].size == 64


def test_operands() -> None:
    got = only("@!%p1 ld.global.nc.v4.u32 {%t1, %t2, %t3, %t4}, [%ptr0+-16];")
    assert got.predicate == Name(text="%p1", negated=True)
    assert got.opcode == "ld.global.nc.v4.u32"
    assert isinstance(got.operands[0], Vector)
    assert got.operands[1] == Address(base=Name(text="%ptr0"), offset=-16)
    shuffle = only("shfl.sync.bfly.b32 %t1|%p1, %t2, 0x10, 31, -1;")
    assert shuffle.operands[0] == Vector(items=(Name(text="%t1"), Name(text="%p1")))
    assert shuffle.operands[2:] == tuple(Immediate(value=v) for v in (16, 31, -1))
    double = only("mov.f64 %ptr1, 0d3FF0000000000000;")
    assert double.operands[1] == Immediate(value=0x3FF0 << 48, float_bits=64)


def test_inner_scopes_have_registers_of_their_own() -> None:
    scoped = "{.reg .f16 low; cvt.rn.f16.f32 low, %t1; mov.b32 %t2, {low, low};}"
    module = parse_module(kernel_text(scoped * 2, 0))
    names = [n for n in module.kernels["k"].registers if n.startswith("low")]
    assert len(set(names)) == 2


def test_labels_in_inline_assembly() -> None:
    text = "{ .reg .pred done; AGAIN: setp.eq.s32 done, %t1, %t1; @!done bra AGAIN; }"
    body = parse_module(kernel_text(text, 0)).kernels["k"].body
    label = next(x for x in body if isinstance(x, Label))
    jump = next(x for x in body if isinstance(x, Instruction) and x.op == "bra")
    assert jump.operands[0] == Name(text=label.name)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("add.s32 %t1, %t2, ?;", "cannot read '?'"),
        ("add.s32 %t1, %t2, 1.5;", "cannot take the operand '1.5'"),
        (".sreg .b32 x;", "cannot take '.sreg'"),
        (".reg .b128x x;", "type '.b128x'"),
        ("ld.global.u32 %t1, [%ptr0;", "wanted ']'"),
    ],
)
def test_what_is_not_understood(line: str, says: str) -> None:
    text = kernel_text(line, 0)
    with pytest.raises(PtxError) as caught:
        parse_module(text)
    assert says in str(caught.value)
    assert text.split("\n")[caught.value.line - 1] == line


def test_a_text_cut_short() -> None:
    with pytest.raises(PtxError, match="ends in the middle"):
        parse_module(kernel_text("add.s32 %t1, %t2, %t3;", 0).rsplit("ret", 1)[0])


def test_functions_are_refused() -> None:
    with pytest.raises(PtxError, match=r"\.func"):
        parse_module(HEADER + ".func f() { ret; }")


WHOLE = kernel_text(
    ".shared .align 4 .b8 tile[64];\nmov.u32 %t2, tile;\nst.shared.u32 [%t2+4], %tid;\n"
    "bar.sync 0;\n{.reg .b16 a; cvt.u16.u32 a, %tid; mov.b32 %t3, {a, a};}\n"
    "@%p1 ld.global.v2.f32 {%t4, %t5}, [%ptr0+-8];\nfma.rn.f32 %t4, %t5, 0f3F800000, %t4;\n"
    "shfl.sync.down.b32 %t6|%p2, %t4, 08, 31, -1;",
    1,
).replace("08,", "010,")


@few
@given(st.lists(st.tuples(st.integers(0), st.text(max_size=4)), min_size=30, max_size=40))
def test_a_text_gone_wrong_is_an_error_of_ours(cuts: list[tuple[int, str]]) -> None:
    decode(parse_module(WHOLE).kernels["k"], {"tile": 0})
    for place, put in cuts:
        at = place % len(WHOLE)
        garbled = WHOLE[:at] + put + WHOLE[at + 2 :]
        try:
            module = parse_module(garbled)
            for kernel in module.kernels.values():
                decode(kernel, {"tile": 0})
        except PtxError:
            continue


def test_a_number_that_is_none() -> None:
    with pytest.raises(PtxError, match="'089'"):
        parse_module(kernel_text("add.s32 %t1, %t2, 089;", 0))
