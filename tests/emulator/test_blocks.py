"""Blocks and what is live at their ends."""

from __future__ import annotations

import pytest

from tests.emulator.single import kernel_text
from trtplug.emulator.blocks import split_blocks
from trtplug.emulator.parse import parse_module
from trtplug.errors import PtxError

LOOP = """
mov.u32 %t2, 0;
mov.u32 %t3, 7;
AGAIN:
add.s32 %t4, %t2, %t3;
add.s32 %t2, %t4, 1;
setp.lt.s32 %p1, %t2, 100;
@%p1 bra AGAIN;
bar.sync 0;
st.global.u32 [%ptr0], %t2;
"""


def test_a_loop() -> None:
    blocks = split_blocks(parse_module(kernel_text(LOOP, 1)).kernels["k"])
    loop = next(b for b in blocks if b.end is not None and b.end.op == "bra")
    assert loop.targets == (loop.index,)
    assert {"%t2", "%t3"} <= loop.live_in
    assert "%t4" not in loop.live_out
    assert {"%t2", "%t3", "%ptr0"} <= loop.live_out
    assert blocks[loop.index + 1].end.op == "bar"  # type: ignore[union-attr]
    assert "%t2" in blocks[loop.index + 1].live_out


@pytest.mark.parametrize("use", ["st.global.u32 [%ptr0], %t2;", ""])
def test_a_predicated_write_keeps_the_old_value_alive(use: str) -> None:
    """Even where nobody reads it: the write itself does."""
    body = f"mov.u32 %t2, 1;\nAT:\n@%p1 mov.u32 %t2, 2;\n{use}"
    blocks = split_blocks(parse_module(kernel_text(body, 1)).kernels["k"])
    assert "%t2" in blocks[1].live_in


def test_a_warp_barrier_ends_no_block() -> None:
    body = "bar.warp.sync -1;\nmov.u32 %t2, 1;"
    assert len(split_blocks(parse_module(kernel_text(body, 0)).kernels["k"])) == 2


def test_a_jump_to_nowhere() -> None:
    with pytest.raises(PtxError, match="NOWHERE"):
        split_blocks(parse_module(kernel_text("bra NOWHERE;", 0)).kernels["k"])
