"""The store: whole entries or none, and whatever is odd is a miss that is cleared away."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtplug.errors import OutputError
from trtplug.store import Store, key_of, sha256_of

if TYPE_CHECKING:
    from pathlib import Path

KEY = "ab" * 32

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(root=tmp_path / "store")


def put(store: Store, key: str = KEY, text: str = "payload") -> Path:
    with store.publishing(key, {"why": "test"}) as part:
        (part / "file").write_text(text)
    found = store.find(key)
    assert found is not None
    return found


def leftovers(store: Store) -> list[str]:
    return [p.name for p in store.root.iterdir() if p.name.startswith("part-")]


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_key_depends_on_values_not_on_order(inputs: dict[str, object]):
    backwards = dict(reversed(inputs.items()))
    assert key_of(inputs) == key_of(backwards)
    assert key_of({**inputs, "one more": 1}) != key_of(inputs)


def test_each_miss_is_a_log_line(store: Store, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG", "trtplug")
    assert store.find(KEY) is None
    assert caplog.messages == [f"no entry {KEY[:16]}"]
    (put(store) / "file").write_text("changed")
    (put(store, "cd" * 32) / "entry.json").write_text("{")
    caplog.clear()
    assert (store.find(KEY), store.find("cd" * 32)) == (None, None)
    starts = [f"entry {key} is not used, and removed: " for key in (KEY[:16], "cd" * 8)]
    assert [m.startswith(s) for m, s in zip(caplog.messages, starts, strict=True)] == [True, True]


def test_published_entry_is_found_whole(store: Store):
    folder = put(store)
    assert (folder / "file").read_text() == "payload"
    assert leftovers(store) == []


def test_nothing_there_is_a_miss_and_makes_no_folder(store: Store):
    assert store.find(KEY) is None
    assert not store.root.exists()


def _change_a_byte(entry: Path):
    (entry / "file").write_text("Payload")


def _cut(entry: Path):
    (entry / "file").write_text("")


def _drop_a_file(entry: Path):
    (entry / "file").unlink()


def _drop_the_list(entry: Path):
    (entry / "entry.json").unlink()


def _no_json(entry: Path):
    (entry / "entry.json").write_text("{")


def _deep_json(entry: Path):
    (entry / "entry.json").write_text("[" * 100_000)


def _other_schema(entry: Path):
    _edit(entry, schema="trtplug.entry/2")


def _other_key(entry: Path):
    _edit(entry, key="cd" * 32)


def _no_files(entry: Path):
    _edit(entry, files=None)


def _a_path_for_a_name(entry: Path):
    _edit(entry, files={"../x": "0" * 64})


def _nul_in_a_name(entry: Path):
    _edit(entry, files={"\0": "0" * 64})


def _a_folder_for_a_file(entry: Path):
    (entry / "file").unlink()
    (entry / "file").mkdir()


def _a_fifo_for_a_file(entry: Path):
    (entry / "file").unlink()
    os.mkfifo(entry / "file")


def _a_file_for_the_entry(entry: Path):
    shutil.rmtree(entry)
    entry.write_text("no folder")


def _edit(entry: Path, **fields: object):
    file = entry / "entry.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


ODD = (
    _change_a_byte,
    _cut,
    _drop_a_file,
    _drop_the_list,
    _no_json,
    _deep_json,
    _other_schema,
    _other_key,
    _no_files,
    _a_path_for_a_name,
    _nul_in_a_name,
    _a_folder_for_a_file,
    _a_fifo_for_a_file,
    _a_file_for_the_entry,
)


@pytest.mark.parametrize("spoil", ODD)
def test_odd_entry_is_a_miss_is_cleared_and_can_be_published_again(store: Store, spoil):
    spoil(put(store))
    assert store.find(KEY) is None
    assert not (store.root / KEY[:2] / KEY).exists()
    assert leftovers(store) == []
    assert (put(store, text="again") / "file").read_text() == "again"


@given(data=st.binary(max_size=200))
def test_any_bytes_in_the_list_are_a_miss(tmp_path_factory: pytest.TempPathFactory, data: bytes):
    store = Store(root=tmp_path_factory.mktemp("store"))
    (put(store) / "entry.json").write_bytes(data)
    assert store.find(KEY) is None


def test_failed_fill_publishes_nothing(store: Store):
    def fill_half():
        with store.publishing(KEY, {}) as part:
            (part / "file").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fill_half()
    assert store.find(KEY) is None
    assert leftovers(store) == []


def test_loser_of_a_race_leaves_the_winner_alone(store: Store):
    with store.publishing(KEY, {}) as slow:
        (slow / "file").write_text("slow")
        put(store, text="fast")
    assert (store.root / KEY[:2] / KEY / "file").read_text() == "fast"
    assert leftovers(store) == []


def test_store_that_cannot_be_written_says_so(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError), Store(root=tmp_path / "file").publishing(KEY, {}):
        pass


def test_a_store_that_cannot_be_written_keeps_nothing_and_stops_nobody(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert not Store(root=tmp_path / "file").keep(KEY, {}, lambda part: None)


def test_a_disk_that_fills_up_keeps_nothing_and_stops_nobody(store: Store):
    def fill(part: Path) -> None:
        (part / "file").write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert not store.keep(KEY, {}, fill)
    assert store.find(KEY) is None
    assert leftovers(store) == []
    assert store.keep(KEY, {}, lambda part: (part / "file").write_text("whole"))
    assert store.find(KEY) is not None


def test_killed_publication_is_swept_by_a_later_one(store: Store):
    put(store, key="cd" * 32)
    left = store.root / "part-0123456789ab"
    left.mkdir()
    (left / "file").write_text("half")
    os.utime(left, (0, 0))
    put(store)
    assert not left.exists()


def test_digest_of_a_file_larger_than_a_piece(tmp_path: Path):
    (tmp_path / "big").write_bytes(b"\0" * 3_000_000)
    assert sha256_of(tmp_path / "big") == hashlib.sha256(bytes(3_000_000)).hexdigest()
