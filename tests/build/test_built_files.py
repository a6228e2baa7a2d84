from __future__ import annotations

import pytest

from tests.backends.trt.tactic_logs import prefixed, print_table, table
from tests.timing.cache_stand_in import StandIn, identity, values
from trtplug.build.finish import read_shipped_cache
from trtplug.build.strategy import consume_listing, read_tables
from trtplug.errors import CacheUnusableError
from trtplug.lock.lock import CACHE_FILES
from trtplug.timing.files import CACHE, CacheEntry, make_sidecar
from trtplug.timing.transfer import write_cache


def test_a_listing_in_the_log_is_taken_and_one_of_the_inspector_stays(tmp_path):
    assert consume_listing(tmp_path) is None
    (tmp_path / "inspector.json").write_text("{")
    assert consume_listing(tmp_path) is None
    (tmp_path / "inspector.json").write_text('{"Layers": [], "Bindings": []}')
    assert consume_listing(tmp_path).layers == ()
    assert (tmp_path / "inspector.json").is_file()
    (tmp_path / "layers.txt").write_text("Layers:\n")
    assert consume_listing(tmp_path) is not None
    assert not (tmp_path / "layers.txt").exists()


def test_tables_of_a_log(tmp_path):
    log = tmp_path / "build.log"
    log.write_text("[V] nothing about tactics\n")
    assert read_tables(log) == ()
    tried = table("conv", [0.01, 0.02])
    log.write_text(prefixed(print_table(tried), "[11/30/2026-11:03:15] [TRT] [V] "))
    assert [t.key for t in read_tables(log)] == [tried.key]


def test_a_cache_ships_with_its_sidecar_or_is_none(tmp_path):
    assert read_shipped_cache(tmp_path) is None
    blob = StandIn().make(values(1))
    sidecar = make_sidecar(identity(), blob, values(1), ())
    write_cache(tmp_path / CACHE, CacheEntry(sidecar=sidecar, blob=blob))
    assert read_shipped_cache(tmp_path).sidecar == sidecar
    (tmp_path / CACHE).write_bytes(b"junk")
    with pytest.raises(CacheUnusableError):
        read_shipped_cache(tmp_path)
    (tmp_path / CACHE_FILES[1]).unlink()
    assert read_shipped_cache(tmp_path) is None
