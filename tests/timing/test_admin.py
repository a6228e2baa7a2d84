from __future__ import annotations

import dataclasses
import os
import re

import pytest

from tests.timing.cache_stand_in import StandIn, identity, key, values
from tests.timing.test_identity import machine
from tests.timing.test_store import blob_of, build
from trtplug.document import to_json
from trtplug.errors import CacheUnusableError, UsageError
from trtplug.timing.admin import (
    find_cache,
    list_caches,
    prune_caches,
    quarantined_names,
    verify_caches,
)
from trtplug.timing.files import CURRENT, read_entry
from trtplug.timing.store import TimingCacheStore

API = StandIn()
HERE = machine()


@pytest.fixture
def store(tmp_path):
    return TimingCacheStore(root=tmp_path / "timing")


def prune(store, *, unused_days=None, foreign=False, dry_run=False):
    return prune_caches(store, HERE, unused_days=unused_days, foreign=foreign, dry_run=dry_run)


def test_an_empty_store_is_no_error(store):
    assert list_caches(store, HERE) == ()
    assert quarantined_names(store) == ()
    assert verify_caches(store, HERE, API) == ()
    assert prune(store).bytes == 0


def test_the_list_says_what_this_machine_would_attach(store):
    build(store, [1])
    build(store, [1, 2], who=identity(driver="1"))
    here, there = sorted(list_caches(store, HERE), key=lambda s: s.differs_here)
    assert here.differs_here == ()
    assert there.differs_here == ("driver: 1, not 580.95.05",)
    assert len(there.sidecar.tactics) == 2


def test_a_flawed_entry_is_listed_with_its_flaw(store):
    build(store, [1])
    os.truncate(blob_of(store), 3)
    (found,) = list_caches(store, HERE)
    assert found.sidecar is None
    assert found.problem.startswith("truncated: 3 bytes")
    with pytest.raises(CacheUnusableError, match="truncated"):
        find_cache(store, identity().entry_id)


def test_an_entry_in_the_place_of_another_is_foreign(store):
    build(store, [1])
    store.folder(identity()).rename(store.root / "entries" / ("0" * 16))
    (found,) = list_caches(store, HERE)
    assert found.problem == "foreign: it lies where another belongs"


def test_entries_are_found_by_how_their_id_starts(store):
    build(store, [1])
    build(store, [1], who=identity(driver="1"))
    assert find_cache(store, identity().entry_id[:6]).sidecar.identity == identity()
    for name in ("", "zz"):
        with pytest.raises(UsageError, match="starts with"):
            find_cache(store, name)


def test_verify_lets_tensorrt_read_what_is_for_this_machine(store):
    build(store, [1])
    assert [e.problem for e in verify_caches(store, HERE, API)] == [""]
    refused = StandIn(version="other")
    assert [e.problem for e in verify_caches(store, HERE, refused)] == [
        "refused: TensorRT does not take it"
    ]
    # Without TensorRT, and for other machines, the digests have to do.
    assert [e.problem for e in verify_caches(store, HERE, None)] == [""]
    assert [e.problem for e in verify_caches(store, machine(driver="1"), refused)] == [""]


def test_verify_compares_keys(store):
    build(store, [1])
    entry = read_entry(store.folder(identity()), identity())
    lying = dataclasses.replace(entry.sidecar, tactics=())
    (store.folder(identity()) / CURRENT).write_text(to_json(lying))
    (found,) = verify_caches(store, HERE, API)
    assert found.problem == "corrupt: it holds other keys than its sidecar lists"


def test_prune_takes_what_was_set_aside_and_left_over(store):
    build(store, [1])
    blob_of(store).unlink()
    store.attach(identity(), API)  # sets it aside
    build(store, [1])
    (store.folder(identity()) / ".part-0").write_bytes(b"xx")
    aside = quarantined_names(store)
    would = prune(store, dry_run=True)
    assert quarantined_names(store) == aside
    done = prune(store)
    assert would == done
    assert done.quarantined == aside
    assert done.leftovers == (f"entries/{identity().entry_id}/.part-0",)
    assert done.bytes > 2
    assert quarantined_names(store) == ()
    assert build(store, [1]).word == "hit"


def test_prune_takes_entries_only_as_asked(store):
    build(store, [1])
    build(store, [1], who=identity(driver="1"))
    assert prune(store).entries == ()
    assert prune(store, unused_days=1).entries == ()
    assert prune(store, foreign=True).entries == (identity(driver="1").entry_id,)
    assert prune(store, unused_days=0).entries == (identity().entry_id,)
    assert list_caches(store, HERE) == ()


def test_an_imported_entry_that_no_build_used_is_not_unused(store):
    build(store, [1])
    entry = read_entry(store.folder(identity()), identity())
    fresh = dataclasses.replace(entry.sidecar, builds=())
    (store.folder(identity()) / CURRENT).write_text(to_json(fresh))
    assert prune(store, unused_days=0).entries == ()


def test_dates_are_utc_and_sort(store):
    build(store, [1])
    used = find_cache(store, identity().entry_id).sidecar.last_used
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", used)
    assert key(1) in find_cache(store, identity().entry_id).sidecar.winners
    assert values(1).keys() == find_cache(store, identity().entry_id).sidecar.winners.keys()
