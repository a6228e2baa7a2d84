from __future__ import annotations

import random
import struct
import tracemalloc

import pytest

from tests.timing.blobs import COMMIT, blob, cache_bytes, key
from trtplug.errors import CacheUnusableError
from trtplug.timing.blob import read_blob, read_blob_file


def test_header_and_every_entry_are_read():
    found = read_blob(blob(), "a.cache")
    assert found.uuid == "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert found.commit == COMMIT
    assert found.version == 240
    assert found.warnings == ()
    assert found.compiled_bytes == 3
    assert [(e.runner, e.tactic_hash, e.time_ms) for e in found.of("classic")] == [
        ("CaskConvolution", "0x1234567890abcdef", 0.25),
        ("Reformat", "0x3ea", 0.0078125),
        ("0x8000007f", "0x0", None),
    ]
    assert sorted((e.tactic_hash, e.time_ms) for e in found.of("compiler")) == [
        ("0x2a", 1.5),
        ("0x49175fa8b00a3", 0.0316),
    ]
    assert {e.key for e in found.entries} == {f"0x{key(n).hex()}" for n in range(1, 6)}
    assert found.runners == {"compiler": 2, "CaskConvolution": 1, "Reformat": 1, "0x8000007f": 1}


def test_a_cache_without_entries_is_one():
    found = read_blob(cache_bytes().pack(bytes(16), COMMIT, [], []), "empty.cache")
    assert found.entries == ()


def test_an_unknown_layout_is_named_and_read_where_it_fits():
    found = read_blob(blob(version=251), "new.cache")
    assert found.warnings == ("layout 251 is not known, only 240: it was read as that one",)
    assert len(found.entries) == 5
    with pytest.raises(CacheUnusableError, match="layout 251 is not known, only 240"):
        read_blob(blob(version=251)[:-4], "new.cache")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b"<html>", "it starts with b'<htm', not b'ptrt'"),
        (b"ptrt\xf0", "cut short after 5 bytes"),
        (blob() + b"\0", "its header says"),
        (blob().replace(COMMIT.encode(), b"no hexadecimals!"), "commit id"),
        (blob().replace(b"_version=1", b"_version=2"), "begins 'file_format_version=2'"),
    ],
)
def test_what_is_wrong_is_said(data, problem):
    with pytest.raises(CacheUnusableError) as caught:
        read_blob(data, "bad.cache")
    assert problem in caught.value.message
    assert "bad.cache" in caught.value.message
    assert "export" not in caught.value.hint


def test_a_count_beyond_the_bytes_is_refused_before_anything_is_made():
    start = blob().index(COMMIT.encode()) + 16
    huge = blob()[:start] + struct.pack("<HHQ", 0x8008, 1, 2**60) + blob()[start + 12 :]
    with pytest.raises(CacheUnusableError, match="more than fit into the file"):
        read_blob(huge, "huge.cache")


def test_every_truncation_is_an_error():
    whole = blob()
    for end in range(len(whole)):
        with pytest.raises(CacheUnusableError):
            read_blob(whole[:end], "short.cache")
        body = end - 20  # and with a header that agrees
        if body >= 0:
            lying = whole[:8] + struct.pack("<Q", body) + whole[16:end]
            with pytest.raises(CacheUnusableError):
                read_blob(lying, "short.cache")


def test_ten_thousand_mutations_are_read_or_refused():
    """Never another error, and never much memory."""
    whole, random_ = blob(), random.Random(11)
    read = refused = 0
    tracemalloc.start()
    for _ in range(10_000):
        data = bytearray(whole)
        for _ in range(random_.choice((1, 1, 2, 8))):
            place = random_.randrange(len(data))
            match random_.randrange(4):
                case 0:
                    data[place] = random_.randrange(256)
                case 1:
                    data[place] ^= 1 << random_.randrange(8)
                case 2:
                    data[place : place + 8] = b"\xff" * len(data[place : place + 8])
                case 3:
                    data[place : place + random_.randrange(9)] = random_.randbytes(4)
        data[8:16] = struct.pack("<Q", len(data) - 20)
        try:
            read_blob(bytes(data), "mutated.cache")
            read += 1
        except CacheUnusableError:
            refused += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read + refused == 10_000
    assert refused > 5_000
    assert peak < 1 << 20


def test_a_file_is_read_and_what_is_none_is_refused(tmp_path):
    file = tmp_path / "t.cache"
    file.write_bytes(blob())
    assert len(read_blob_file(file).entries) == 5
    for place in (tmp_path, tmp_path / "missing"):
        with pytest.raises(CacheUnusableError, match="no regular file"):
            read_blob_file(place)
