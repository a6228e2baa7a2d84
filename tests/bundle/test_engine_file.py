"""The canonical digest: equal where only generated counters differ, and nowhere else."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.bundle import engine_file as artifact
from trtplug.bundle.engine_file import canonical_sha256, read_header
from trtplug.errors import FileUnreadableError

if TYPE_CHECKING:
    from pathlib import Path

COUNTERS = st.lists(st.integers(0, 99_999), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("artifact") / "engine"


def digest(file: Path, data: bytes) -> str:
    file.write_bytes(data)
    return canonical_sha256(file)


def plan(counters: list[int], shift: int = 0) -> bytes:
    names = (b"\0__mye%d\0op" % (c + shift) for c in counters)
    return b"ptrt" + b"".join(names) + b"end"


@given(counters=COUNTERS, shift=st.integers(0, 9_999))
def test_counters_that_start_elsewhere_agree(file: Path, counters: list[int], shift: int):
    assert digest(file, plan(counters)) == digest(file, plan(counters, shift))


@given(counters=COUNTERS)
def test_counters_in_another_pattern_differ(file: Path, counters: list[int]):
    other = [*counters, counters[0]]
    fresh = [*counters, max(counters) + 1]
    assert digest(file, plan(other)) != digest(file, plan(fresh))


@given(data=st.binary(max_size=64), place=st.integers(0, 63))
def test_any_other_byte_counts(file: Path, data: bytes, place: int):
    changed = bytearray(data)
    if place < len(changed):
        changed[place] ^= 0x80
        assert digest(file, data) != digest(file, bytes(changed))


def test_file_without_counters_has_its_plain_digest(file: Path):
    for data in (b"", b"plain", b"__myel0"):
        assert digest(file, data) == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("data", [b"", b"ptrt", b"\0" * 64, b"x" * 200, b"ptrt" + b"\1" * 200])
def test_other_files_have_no_header(file: Path, data: bytes):
    file.write_bytes(data)
    assert read_header(file) is None


def test_header_of_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(FileUnreadableError):
        read_header(tmp_path / "nowhere")
    with pytest.raises(FileUnreadableError):
        read_header(tmp_path)


PIECES = st.lists(
    st.sampled_from(
        [b"__mye123", b"__mye9_x", b"_", b"__", b"abc", b"__i64_inst_combine_temp_7", b"\0", b"999"]
    )
)


@given(PIECES, st.sampled_from([1, 2, 7, 13, 64, 100]))
def test_a_name_over_the_border_of_two_pieces_is_one_name(tmp_path_factory, pieces, size):
    file = tmp_path_factory.mktemp("engine") / "e"
    file.write_bytes(b"".join(pieces))
    whole = canonical_sha256(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(artifact, "_CHUNK_BYTES", size)
        assert canonical_sha256(file) == whole
