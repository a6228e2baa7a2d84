from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.timing.cache_stand_in import Forgetful, StandIn, identity, key, value, values
from tests.timing.test_identity import machine
from tests.timing.test_store import build
from trtplug.errors import BackendMissingError, CacheMismatchError, CacheUnusableError, OutputError
from trtplug.timing.admin import find_cache
from trtplug.timing.store import TimingCacheStore
from trtplug.timing.transfer import import_cache, merge_caches, read_cache, sidecar_of, write_cache

API = StandIn()
HERE = machine()


def absent():
    raise BackendMissingError(backend="trt", problem="not here")


@pytest.fixture
def store(tmp_path):
    return TimingCacheStore(root=tmp_path / "timing")


@pytest.fixture
def other(tmp_path):
    return TimingCacheStore(root=tmp_path / "other")


def exported(store, file, numbers, who=None):
    build(store, numbers, who=who)
    write_cache(file, find_cache(store, (who or identity()).entry_id))
    return file


def test_what_was_exported_is_imported_with_its_history(store, other, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1, 2])
    sidecar = import_cache(other, file, HERE, absent)
    assert sidecar == find_cache(store, identity().entry_id).sidecar
    attached = other.attach(identity(), API)
    assert attached.before.keys() == {key(1), key(2)}
    assert import_cache(other, file, HERE, absent) == sidecar  # again: nothing to do


def test_an_import_into_an_entry_merges(store, other, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1, 2])
    build(other, [2, 3])
    with pytest.raises(BackendMissingError):
        import_cache(other, file, HERE, absent)
    sidecar = import_cache(other, file, HERE, lambda: API)
    assert set(sidecar.winners) == {key(1), key(2), key(3)}
    assert len(sidecar.builds) == 2
    assert other.attach(identity(), API).before == sidecar.winners


def test_a_cache_for_another_machine_is_refused_field_by_field(store, other, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1])
    with pytest.raises(CacheMismatchError) as caught:
        import_cache(other, file, machine(driver="1", cuda="12.8"), absent)
    assert caught.value.differences == ("driver: 580.95.05, not 1", "cuda: 13.0, not 12.8")
    assert not (other.root / "entries").exists()
    import_cache(other, file, None, absent)  # --any-machine
    # Stored, but attached only where all is equal.
    assert other.attach(identity(driver="1"), API).blob is None


DAMAGE = {
    "no sidecar": lambda f: sidecar_of(f).unlink(),
    "no blob": lambda f: f.unlink(),
    "cut blob": lambda f: os.truncate(f, 5),
    "other blob": lambda f: f.write_bytes(b"x" * f.stat().st_size),
    "cut sidecar": lambda f: os.truncate(sidecar_of(f), 40),
    "sidecar is a list": lambda f: sidecar_of(f).write_text("[]"),
    "deep sidecar": lambda f: sidecar_of(f).write_text('{"schema":' + "[" * 100_000),
    "newer sidecar": lambda f: sidecar_of(f).write_text('{"schema":"trtplug.timing-cache/2"}'),
    "blob is a folder": lambda f: (f.unlink(), f.mkdir()),
    "blob is a pipe": lambda f: (f.unlink(), os.mkfifo(f)),
    "sidecar is a pipe": lambda f: (sidecar_of(f).unlink(), os.mkfifo(sidecar_of(f))),
    "blob is endless": lambda f: (f.unlink(), f.symlink_to("/dev/zero")),
    "sidecar is endless": lambda f: (sidecar_of(f).unlink(), sidecar_of(f).symlink_to("/dev/zero")),
    "digest leads elsewhere": lambda f: edit(f, sha256="../../../../etc/passwd"),
    "NaN": lambda f: sidecar_of(f).write_text(sidecar_of(f).read_text().replace("0.5", "NaN")),
    "size is huge": lambda f: edit(f, bytes=1 << 40),
    "flags hold a list": lambda f: edit(f, identity={"flags": []}),
}


def edit(file, **fields):
    document = json.loads(sidecar_of(file).read_text())
    document["identity"] |= fields.pop("identity", {})
    sidecar_of(file).write_text(json.dumps(document | fields))


@pytest.mark.parametrize("name", DAMAGE)
def test_hostile_files_are_refused_with_one_error(store, other, tmp_path, name):
    file = exported(store, tmp_path / "c.cache", [1])
    DAMAGE[name](file)
    with pytest.raises(CacheUnusableError) as caught:
        import_cache(other, file, HERE, lambda: API)
    assert str(file) in caught.value.message
    assert not (other.root / "entries").exists()


def test_an_import_over_a_flawed_entry_sets_that_aside(store, other, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1])
    build(other, [2])
    (other.folder(identity()) / "current.json").write_text("{}")
    import_cache(other, file, HERE, absent)
    assert other.attach(identity(), API).before.keys() == {key(1)}
    assert len(list((other.root / "set-aside").iterdir())) == 1


def test_exports_replace_only_their_like(store, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1])
    exported(store, file, [1, 2])  # the same identity: a newer state
    assert len(read_cache(file).sidecar.tactics) == 2
    with pytest.raises(CacheMismatchError, match=r"driver: 580\.95\.05, not 1"):
        exported(store, file, [1], who=identity(driver="1"))
    other_file = tmp_path / "other_file"
    other_file.write_text("mine")
    with pytest.raises(CacheUnusableError):
        exported(store, other_file, [1])
    assert other_file.read_text() == "mine"


def test_an_export_that_cannot_be_written_says_so(store, tmp_path):
    build(store, [1])
    with pytest.raises(OutputError):
        write_cache(tmp_path / "absent" / "c", find_cache(store, identity().entry_id))


def test_merged_caches_hold_the_union_and_the_first_winner(store, other, tmp_path):
    one = exported(store, tmp_path / "1", [1, 2])
    attached = other.attach(identity(), API)
    made = API.make({key(2): value(9), key(3): value(3)})
    other.publish(attached, API, made, model_sha256="0" * 64)
    two = tmp_path / "2"
    write_cache(two, find_cache(other, identity().entry_id))
    whole = merge_caches([one, two], API)
    assert whole.sidecar.winners == {key(1): "0x1", key(2): "0x2", key(3): "0x3"}
    assert merge_caches([two, one], API).sidecar.winners[key(2)] == "0x9"
    assert API.read(whole.blob).keys() == whole.sidecar.winners.keys()


def test_caches_of_two_identities_are_not_merged(store, tmp_path):
    one = exported(store, tmp_path / "1", [1])
    two = exported(store, tmp_path / "2", [1], who=identity(flags={"tf32": "off"}))
    with pytest.raises(CacheMismatchError) as caught:
        merge_caches([one, two], API)
    assert caught.value.path == str(two)
    assert caught.value.differences == ("flag tf32: off, not on",)


@pytest.mark.parametrize(
    ("api", "problem"),
    [
        (StandIn(version="1"), "does not take it"),
        (Forgetful(), "does not combine it"),
    ],
)
def test_what_tensorrt_refuses_is_not_merged(store, other, tmp_path, api, problem):
    one, two = exported(store, tmp_path / "1", [1]), exported(other, tmp_path / "2", [2])
    with pytest.raises(CacheUnusableError, match=problem):
        merge_caches([one, two], api)


def test_a_lying_sidecar_is_not_merged(store, other, tmp_path):
    one, two = exported(store, tmp_path / "1", [1]), exported(other, tmp_path / "2", [2])
    edit(two, tactics=[])
    with pytest.raises(CacheUnusableError, match="other keys"):
        merge_caches([one, two], API)


def test_a_pair_may_be_moved_together(store, other, tmp_path):
    file = exported(store, tmp_path / "c.cache", [1])
    (tmp_path / "elsewhere").mkdir()
    moved = tmp_path / "elsewhere" / "renamed"
    shutil.move(file, moved)
    shutil.move(sidecar_of(file), sidecar_of(moved))
    assert values(1).keys() == set(import_cache(other, moved, HERE, absent).winners)
