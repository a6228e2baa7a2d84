"""Waves and sectors against a slow count of their definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.single import kernel_text, run_text
from trtplug.emulator.counters import sectors, waves
from trtplug.emulator.run import Buffer

lanes = st.lists(st.integers(-1, 300), min_size=32, max_size=32)


def slow_waves(addresses: list[int], width: int) -> int:
    size = max(width, 4)
    group, total = 128 // size, 0
    for start in range(0, 32, group):
        banks: dict[int, set[int]] = {}
        for a in addresses[start : start + group]:
            if a >= 0:
                banks.setdefault(a // size % group, set()).add(a // size)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@given(numbers=lanes, width=st.sampled_from([2, 4, 8, 16]))
def test_waves(numbers: list[int], width: int) -> None:
    addresses = [n * width if n >= 0 else -1 for n in numbers]
    requests, got, ideal = waves(np.array([addresses]), width)
    assert got == slow_waves(addresses, width)
    assert requests == any(a >= 0 for a in addresses)
    assert ideal <= got


@given(numbers=lanes, width=st.sampled_from([1, 2, 4, 8, 16]))
def test_sectors(numbers: list[int], width: int) -> None:
    addresses = [n * width if n >= 0 else -1 for n in numbers]
    _, got, ideal = sectors(np.array([addresses]), width)
    on = {a for a in addresses if a >= 0}
    assert got == len({a // 32 for a in on})
    assert ideal == -(-len(on) * width // 32)


def test_known_patterns() -> None:
    lane = np.arange(32)[None]
    assert waves(lane * 4, 4) == (1, 1, 1)
    assert waves(lane * 8, 4) == (1, 2, 1)
    assert waves(lane * 128, 4) == (1, 32, 1)
    assert waves(lane * 0, 4) == (1, 1, 1)
    assert waves(lane * 16, 16) == (1, 4, 4)
    assert waves(lane * 64, 16) == (1, 16, 4)
    assert sectors(lane * 4, 4) == (1, 4, 4)
    assert sectors(lane * 32, 4) == (1, 32, 4)


def test_what_a_run_counts() -> None:
    """3 blocks of 2 warps; half of the lanes store, 8 bytes apart; 4-way conflicts in shared."""
    body = """
    mov.u32 %t2, tile;
    mad.lo.s32 %t2, %tid, 16, %t2;
    st.shared.u32 [%t2], %tid;
    mad.wide.s32 %w1, %gid, 8, %ptr0;
    and.b32 %t3, %tid, 31;
    setp.lt.s32 %p1, %t3, 16;
    @%p1 st.global.u32 [%w1], %tid;
    """
    text = kernel_text(body, 1, variables=".shared .align 16 .b8 tile[1024];")
    data = np.zeros(400, np.uint32)
    run = run_text(text, [Buffer(name="x", data=data, role="both")], threads=64, blocks=3)
    counters = run.counters
    (shared,), (stored,) = counters.shared, counters.global_
    assert (shared.opcode, shared.requests, shared.units, shared.ratio) == (
        "st.shared.u32", 6, 24, 4.0,
    )  # fmt: skip
    assert (stored.requests, stored.units, stored.ideal) == (6, 24, 12)
    assert counters.by_opcode["st.global.u32"] == 6
    assert counters.warp_instructions == sum(counters.by_opcode.values())
    assert counters.global_ratio == 2.0
