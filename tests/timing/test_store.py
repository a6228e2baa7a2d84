from __future__ import annotations

import contextlib
import dataclasses
import json
import multiprocessing
import os
import random
import signal
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.timing.cache_builds import API, MODEL, add_entries, build, publish_for_ever
from tests.timing.cache_stand_in import Forgetful, StandIn, identity, key, value, values
from trtplug.errors import OutputError
from trtplug.timing.files import CURRENT, CacheEntry, Flawed, read_entry
from trtplug.timing.store import TimingCacheStore, combined


@pytest.fixture
def store(tmp_path):
    return TimingCacheStore(root=tmp_path / "timing")


def held(store, who=None):
    entry = read_entry(store.folder(who or identity()), who or identity())
    assert isinstance(entry, CacheEntry)
    assert API.read(entry.blob).keys() == entry.sidecar.winners.keys()
    return set(entry.sidecar.winners)


def blob_of(store):
    (blob,) = store.folder(identity()).glob("*.cache")
    return blob


def test_cold_then_hit_then_partial(store):
    first = build(store, [1, 2])
    assert (first.word, first.accounting.hits, len(first.accounting.new)) == ("cold", 0, 2)
    second = build(store, [1, 2])
    assert (second.word, second.accounting.hits, second.accounting.new) == ("hit", 2, ())
    assert second.sha256 == first.sha256
    third = build(store, [2, 3])
    assert (third.word, third.accounting.hits, third.accounting.new) == ("partial", 1, (key(3),))
    assert held(store) == {key(1), key(2), key(3)}


def test_the_sidecar_says_what_builds_did(store):
    build(store, [1])
    build(store, [1, 2])
    entry = read_entry(store.folder(identity()), identity())
    assert [(b.word, b.hits, b.misses) for b in entry.sidecar.builds] == [
        ("cold", 0, 1),
        ("partial", 1, 1),
    ]
    assert entry.sidecar.identity == identity()
    assert entry.sidecar.bytes == len(entry.blob)
    assert entry.sidecar.last_used == entry.sidecar.builds[-1].when


def test_a_hit_has_nothing_to_combine(store, monkeypatch):
    build(store, [1, 2])
    monkeypatch.setattr(StandIn, "combine", lambda *_: pytest.fail("combined"))
    assert build(store, [1]).word == "hit"
    assert held(store) == {key(1), key(2)}


def test_another_identity_is_another_entry(store):
    build(store, [1])
    other = identity(driver="1")
    assert store.attach(other, API).blob is None
    assert store.attach(other, API).rejected == ""


def test_the_first_winner_of_a_key_stays(store):
    build(store, [1])
    late = API.make({key(1): value(9), **values(2)})
    attached = dataclasses.replace(store.attach(identity(), API), blob=None, before={})
    store.publish(attached, API, late, model_sha256=MODEL)
    entry = read_entry(store.folder(identity()), identity())
    assert entry.sidecar.winners == {key(1): "0x1", key(2): "0x2"}


def foreign(store):
    """The entry of another GPU, copied over ours."""
    other = identity(gpu="NVIDIA H100")
    build(store, [1], who=other)
    ours, theirs = store.folder(identity()), store.folder(other)
    for file in theirs.iterdir():
        (ours / file.name).write_bytes(file.read_bytes())


def edit_sidecar(**fields):
    def damage(store):
        file = store.folder(identity()) / CURRENT
        file.write_text(json.dumps(json.loads(file.read_text()) | fields))

    return damage


def edit_identity(**fields):
    def damage(store):
        file = store.folder(identity()) / CURRENT
        document = json.loads(file.read_text())
        document["identity"] |= fields
        file.write_text(json.dumps(document))

    return damage


def resealed(make_blob):
    """A blob that TensorRT refuses or reads otherwise, under a sidecar with the right digest."""

    def damage(store):
        import hashlib

        folder, data = store.folder(identity()), make_blob()
        digest = hashlib.sha256(data).hexdigest()
        (folder / f"{digest}.cache").write_bytes(data)
        edit_sidecar(sha256=digest, bytes=len(data))(store)

    return damage


DAMAGE = {
    "foreign": (foreign, "foreign"),
    "foreign flags": (edit_identity(flags={"tf32": "off"}), "foreign"),
    "older builder": (edit_identity(builder="11.3.0.99"), "older"),
    "older layout": (edit_sidecar(schema="trtplug.timing-cache/0"), "older"),
    "truncated": (lambda s: os.truncate(blob_of(s), blob_of(s).stat().st_size - 1), "truncated"),
    "empty": (lambda s: os.truncate(blob_of(s), 0), "truncated"),
    "longer": (lambda s: blob_of(s).write_bytes(blob_of(s).read_bytes() + b"x"), "corrupt"),
    "a flipped byte": (
        lambda s: blob_of(s).write_bytes(b"X" + blob_of(s).read_bytes()[1:]),
        "corrupt",
    ),
    "no blob": (lambda s: blob_of(s).unlink(), "corrupt"),
    "no JSON": (lambda s: (s.folder(identity()) / CURRENT).write_text("{"), "corrupt"),
    "no text": (lambda s: (s.folder(identity()) / CURRENT).write_bytes(b"\xff"), "corrupt"),
    "other document": (edit_sidecar(schema="trtplug.report/1"), "corrupt"),
    "missing field": (edit_sidecar(tactics=None), "corrupt"),
    "other keys": (resealed(lambda: API.make(values(7))), "corrupt"),
    "of another device": (resealed(lambda: StandIn(device="x").make(values(1))), "refused"),
    "of another version": (resealed(lambda: StandIn(version="1").make(values(1))), "refused"),
    "garbage": (resealed(lambda: b"\x00" * 100), "refused"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_cannot_be_trusted_is_never_attached_and_quarantined(store, name, caplog):
    caplog.set_level("INFO", "trtplug")
    damage, flaw = DAMAGE[name]
    build(store, [1])
    damage(store)
    attached = store.attach(identity(), API)
    assert attached.blob is None
    assert attached.before == {}
    assert attached.rejected.startswith(f"{flaw}: ")
    entry_id, why, _ = attached.quarantined.split(".")
    assert (entry_id, why) == (identity().entry_id, flaw)
    assert (store.root / "set-aside" / attached.quarantined).is_dir()
    assert f"timing cache {entry_id} is not attached: {attached.rejected}" in caplog.messages
    outcome = store.publish(attached, API, API.make(values(1)), model_sha256=MODEL)
    assert outcome.word == "rejected"
    assert outcome.reason == attached.rejected
    # And the next build has a good one again.
    assert build(store, [1]).word == "hit"


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_between_attach_and_publish_loses_no_build(store, name):
    build(store, [1])
    attached = store.attach(identity(), API)
    DAMAGE[name][0](store)
    outcome = store.publish(attached, API, API.make(values(1, 2)), model_sha256=MODEL)
    assert outcome.sha256 is not None
    assert outcome.quarantined is not None
    assert held(store) == {key(1), key(2)}


def test_a_cache_that_tensorrt_does_not_read_back_is_not_stored(store):
    build(store, [1])
    attached = store.attach(identity(), API)
    outcome = store.publish(attached, API, b"junk", model_sha256=MODEL)
    assert (outcome.word, outcome.sha256) == ("rejected", None)
    assert held(store) == {key(1)}


def test_a_combine_that_loses_keys_is_not_trusted(store):
    build(store, [1])
    forgetful = Forgetful()
    attached = dataclasses.replace(store.attach(identity(), API), blob=None, before={})
    outcome = store.publish(attached, forgetful, API.make(values(2)), model_sha256=MODEL)
    assert outcome.sha256 is None
    assert "does not combine" in outcome.reason
    assert held(store) == {key(1)}
    kept = (store.root / "set-aside" / outcome.quarantined / "made.cache").read_bytes()
    assert API.read(kept).keys() == values(2).keys()


def test_combining_refuses_other_versions():
    one, two = API.make(values(1)), StandIn(version="1").make(values(2))
    assert combined(API, one, two, [key(1), key(2)]) is None


def test_a_store_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").write_text("")
    store = TimingCacheStore(root=tmp_path / "file" / "timing")
    attached = store.attach(identity(), API)
    with pytest.raises(OutputError):
        store.publish(attached, API, API.make(values(1)), model_sha256=MODEL)


def test_a_flawed_entry_of_a_store_that_cannot_be_written_is_not_attached(store, monkeypatch):
    build(store, [1])
    os.truncate(blob_of(store), 3)

    def refuse(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(TimingCacheStore, "quarantine", refuse)
    attached = store.attach(identity(), API)
    assert (attached.blob, attached.quarantined) == (None, None)
    assert attached.rejected.startswith("truncated: ")


def test_parts_of_killed_writers_are_cleared_by_the_next(store):
    build(store, [1])
    folder = store.folder(identity())
    (folder / ".part-0123").write_bytes(b"half")
    (folder / ("0" * 64 + ".cache")).write_bytes(b"orphan")
    build(store, [2])
    assert len(list(folder.iterdir())) == 2


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.integers(0, 12), min_size=1, max_size=5), min_size=1, max_size=5))
def test_any_sequence_of_builds_ends_with_the_union(tmp_path_factory, sequence):
    store = TimingCacheStore(root=tmp_path_factory.mktemp("timing"))
    seen: set[int] = set()
    for numbers in sequence:
        outcome = build(store, sorted(numbers))
        expected = "hit" if numbers <= seen else "partial" if numbers & seen else "cold"
        assert outcome.word == expected
        seen |= numbers
        assert held(store) == {key(n) for n in seen}


# --- processes ---

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.timing.cache_builds"])


def test_eight_processes_leave_the_union(store):
    barrier = PROCESSES.Barrier(8)
    workers = [
        PROCESSES.Process(target=add_entries, args=(store.root, n, 6, barrier)) for n in range(8)
    ]
    for worker in workers:
        worker.start()
    # Readers meanwhile: whole pairs only, and no key that was there ever goes.
    seen: set[str] = set()
    while any(w.is_alive() for w in workers):
        entry = read_entry(store.folder(identity()), identity())
        if entry is not None:
            assert isinstance(entry, CacheEntry), entry
            now = set(entry.sidecar.winners)
            assert seen <= now
            seen = now
        time.sleep(0.002)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert held(store) == {key(1000 * n + k) for n in range(8) for k in range(6)}
    entry = read_entry(store.folder(identity()), identity())
    assert len(entry.sidecar.builds) == 48
    assert not (store.root / "set-aside").exists()


def test_kill_at_any_moment_leaves_the_last_good_pair(store):
    rng = random.Random(5)
    acknowledged: set[int] = set()
    for round_number in range(12):
        receive, send = PROCESSES.Pipe(duplex=False)
        worker = PROCESSES.Process(target=publish_for_ever, args=(store.root, round_number, send))
        worker.start()
        send.close()
        acknowledged.add(receive.recv())
        time.sleep(rng.uniform(0, 0.04))
        os.kill(worker.pid, signal.SIGKILL)
        worker.join()
        with contextlib.suppress(EOFError):
            while receive.poll():
                acknowledged.add(receive.recv())
        entry = read_entry(store.folder(identity()), identity())
        assert isinstance(entry, CacheEntry), entry
        assert {key(n) for n in acknowledged} <= set(entry.sidecar.winners)
        assert not isinstance(entry, Flawed)
    # A lock whose holder was killed is free.
    assert build(store, [999_999]).word == "cold"


# --- random damage ---


@pytest.mark.parametrize("seed", range(16))
def test_random_damage_is_told_or_did_not_reach_the_cache(store, seed):
    build(store, [1, 2, 3])
    whole = blob_of(store).read_bytes()
    rng = random.Random(seed)
    file = rng.choice(sorted(store.folder(identity()).iterdir()))
    data = bytearray(file.read_bytes())
    for _ in range(rng.randint(1, 3)):
        position = rng.randrange(len(data))
        if rng.random() < 0.3:
            del data[position:]
            break
        data[position] = rng.randrange(256)
    file.write_bytes(data)
    attached = store.attach(identity(), API)
    assert attached.blob in (None, whole)
    assert (attached.blob is None) == bool(attached.rejected) == bool(attached.quarantined)
    # The next build has a good one in either case.
    assert build(store, [1, 2, 3]).sha256 is not None
    assert build(store, [1, 2, 3]).word == "hit"
