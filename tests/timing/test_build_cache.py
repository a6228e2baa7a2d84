from __future__ import annotations

import pytest

from tests.timing.cache_stand_in import StandIn, identity, key, values
from tests.timing.test_store import build, held
from trtplug.errors import OutputError
from trtplug.lock.lock import CACHE_FILES
from trtplug.timing.files import CACHE
from trtplug.timing.store import Attached, TimingCacheStore
from trtplug.timing.transfer import publish_cache, read_cache, write_cache_for_child

API = StandIn()


@pytest.fixture
def store(tmp_path):
    return TimingCacheStore(root=tmp_path / "timing")


def take(store, attached, folder):
    return publish_cache(store, attached, API, folder, model_sha256="0" * 64)


def test_a_first_build_starts_empty_and_ships_its_pair(store, tmp_path):
    attached = store.attach(identity(), API)
    assert write_cache_for_child(attached, tmp_path / "in") is None
    (tmp_path / CACHE).write_bytes(API.make(values(1, 2)))
    assert take(store, attached, tmp_path).word == "cold"
    pair = read_cache(tmp_path / CACHE)
    assert pair.sidecar.winners == {key(1): "0x1", key(2): "0x2"}
    assert pair.sidecar.identity == identity()
    assert held(store) == {key(1), key(2)}
    assert set(CACHE_FILES) <= {f.name for f in tmp_path.iterdir()}


def test_the_next_one_is_given_what_the_store_has(store, tmp_path):
    build(store, [1])
    attached = store.attach(identity(), API)
    file = write_cache_for_child(attached, tmp_path / "in")
    assert API.read(file.read_bytes()).keys() == values(1).keys()
    (tmp_path / CACHE).write_bytes(file.read_bytes())
    outcome = take(store, attached, tmp_path)
    assert (outcome.word, outcome.accounting.hits) == ("hit", None)


def test_a_cache_that_tensorrt_does_not_read_does_not_ship(store, tmp_path):
    attached = store.attach(identity(), API)
    (tmp_path / CACHE).write_bytes(b"junk")
    assert take(store, attached, tmp_path).word == "rejected"
    assert not (tmp_path / CACHE).exists()
    assert not (tmp_path / CACHE_FILES[1]).exists()


def test_a_build_without_a_cache_has_no_outcome(store, tmp_path):
    assert take(store, store.attach(identity(), API), tmp_path) is None


def test_without_a_store_the_pair_ships_and_nothing_is_kept(tmp_path):
    store = TimingCacheStore(root=tmp_path / "timing")
    attached = Attached(identity=identity(), blob=None, before={}, rejected="", quarantined=None)
    (tmp_path / CACHE).write_bytes(API.make(values(1, 2)))
    outcome = publish_cache(
        None, attached, API, tmp_path, model_sha256="0" * 64, bypass_reason="as asked"
    )
    assert (outcome.word, outcome.reason, outcome.sha256) == ("cold", "as asked", None)
    assert (outcome.accounting.hits, len(outcome.accounting.new)) == (0, 2)
    assert read_cache(tmp_path / CACHE).sidecar.winners == {key(1): "0x1", key(2): "0x2"}
    assert not store.root.exists()
    (tmp_path / CACHE).write_bytes(b"junk")
    assert publish_cache(None, attached, API, tmp_path, model_sha256="").word == "rejected"


def test_a_folder_that_cannot_be_written_says_so(store, tmp_path):
    build(store, [1])
    with pytest.raises(OutputError):
        write_cache_for_child(store.attach(identity(), API), tmp_path / "absent" / "in")
