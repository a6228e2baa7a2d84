"""Races in shared memory, and what is none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.run import Buffer, Run

SETUP = """
mov.u32 %t2, tile;
mad.lo.s32 %t3, %tid, 4, %t2;
xor.b32 %t4, %tid, OTHER;
mad.lo.s32 %t4, %t4, 4, %t2;
"""
OWN, THEIRS = "st.shared.u32 [%t3], %tid;\n", "ld.shared.u32 %t5, [%t4];\n"
MINE = "ld.shared.u32 %t6, [%t3];\n"
BARRIER, WARP_BARRIER = "bar.sync 0;\n", "bar.warp.sync -1;\n"


def race(middle: str, other: int = 1, threads: int = 64, blocks: int = 3) -> Run:
    body = SETUP.replace("OTHER", str(other)) + middle
    text = kernel_text(body, 1, variables=".shared .align 16 .b8 tile[1024];")
    buffer = Buffer(name="x", data=np.zeros(64, np.uint32), role="both")
    return run_text(text, [buffer], threads=threads, blocks=blocks)


@pytest.mark.parametrize(
    ("middle", "other", "kinds"),
    [
        (OWN + MINE, 1, []),
        (OWN + THEIRS, 1, ["race"]),
        (OWN + BARRIER + THEIRS, 1, []),
        (OWN + BARRIER + THEIRS + OWN, 1, ["race"]),
        (OWN + BARRIER + MINE + OWN, 1, []),
        (OWN + BARRIER + THEIRS + BARRIER + OWN, 1, []),
        (OWN + WARP_BARRIER + THEIRS, 1, []),
        (OWN + WARP_BARRIER + THEIRS, 32, ["race"]),
        (OWN + BARRIER + THEIRS + WARP_BARRIER + OWN, 1, []),
        (OWN + BARRIER + THEIRS + WARP_BARRIER + OWN, 33, ["race"]),
        (OWN + "st.shared.u32 [%t4], %tid;\n", 1, ["race", "race"]),
        ("st.shared.u32 [%t2], %tid;\n", 1, ["race"]),
    ],
)
def test_pairs(middle: str, other: int, kinds: list[str]) -> None:
    found = race(middle, other).findings
    assert [f.kind for f in found] == kinds or (kinds and {f.kind for f in found} == {"race"})


def test_reads_of_one_word_are_none() -> None:
    middle = "setp.eq.s32 %p1, %tid, 0;\n@%p1 st.shared.u32 [%t2], %tid;\n" + BARRIER
    assert race(middle + "ld.shared.u32 %t5, [%t2];\n").findings == ()


def test_two_halves_of_a_word_are_two_places() -> None:
    middle = ".reg .b16 %h;\ncvt.u16.u32 %h, %tid;\nmad.lo.s32 %t5, %tid, 2, %t2;\n"
    assert race(middle + "st.shared.u16 [%t5], %h;\n").findings == ()


def test_a_wide_read_over_a_narrow_write() -> None:
    middle = OWN + "and.b32 %t5, %t3, 0xFFFFFFF0;\nld.shared.v4.u32 {%t6, %t7, %t8, %t9}, [%t5];\n"
    (found,) = race(middle).findings
    assert found.kind == "race"
    assert "writes at line" in found.detail


def test_it_tells_which_block() -> None:
    """Only block 2 leaves the barrier's protection: its threads write where others read."""
    middle = (
        OWN + BARRIER + THEIRS + "mov.u32 %t6, %ctaid.x;\nsetp.eq.s32 %p1, %t6, 2;\n"
        "@%p1 st.shared.u32 [%t3], %tid;\n"
    )
    (found,) = race(middle).findings
    assert found.where.startswith("block 2 ")


def test_blocks_at_different_paces() -> None:
    """Even blocks pass a barrier more: an epoch ends for them alone."""
    middle = (
        OWN + BARRIER + "mov.u32 %t6, %ctaid.x;\nand.b32 %t6, %t6, 1;\nsetp.eq.s32 %p1, %t6, 0;\n"
        "@%p1 bra ON;\n" + THEIRS + BARRIER + "ON:\n" + OWN
    )
    assert race(middle).findings == ()
    assert [f.kind for f in race(middle.replace(THEIRS + BARRIER, THEIRS)).findings] == ["race"]


def test_a_barrier_of_some_blocks_ends_no_epoch_of_the_others() -> None:
    """Odd blocks wait at a barrier of their own, which opens after that of the even ones."""
    middle = (
        OWN + "mov.u32 %t6, %ctaid.x;\nand.b32 %t6, %t6, 1;\nsetp.eq.s32 %p1, %t6, 1;\n"
        "@%p1 bra ODD;\n" + BARRIER + "bra ON;\nODD:\n" + THEIRS + "bar.sync 1, 64;\nON:\n"
    )
    (found,) = race(middle).findings
    assert found.where.startswith("block 1 ")
    assert found.count == 64
