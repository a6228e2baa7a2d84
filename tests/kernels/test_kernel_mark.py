"""Marks are found wherever they lie, whole, and nothing else is taken for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.kernels import kit
from trtplug.kernels.kit import find_marks, mark_ptx

if TYPE_CHECKING:
    from pathlib import Path

SITES = [f"{n:064x}" for n in (1, 2, 2**255)]


@given(
    st.lists(st.tuples(st.sampled_from(SITES), st.integers(1, 999)), max_size=6),
    st.lists(st.integers(0, 400), min_size=7, max_size=7),
    st.integers(120, 300),
)
def test_marks_across_chunks(tmp_path_factory, marks, gaps, chunk):
    folder: Path = tmp_path_factory.mktemp("marks")
    texts = [mark_ptx("\n.version 7.0\n", *mark).encode() for mark in marks]
    file = folder / "engine"
    file.write_bytes(
        b"".join(b"\0" * gap + text for gap, text in zip(gaps, [*texts, b""], strict=False))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit, "_CHUNK_BYTES", chunk)
        found = find_marks(file)
    wanted = {site: tuple(sorted({n for s, n in marks if s == site})) for site, _ in marks}
    assert found == wanted


def test_other_bytes_are_no_mark(tmp_path: Path):
    file = tmp_path / "engine"
    file.write_bytes(b"// trtplug site=" + b"g" * 64 + b" tactic=1 // trtplug site=ab tactic=1")
    assert find_marks(file) == {}
    file.write_bytes(b"")
    assert find_marks(file) == {}
