from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.lock.locks import RTX, TRT
from trtplug.document import from_json, to_json
from trtplug.errors import DocumentError
from trtplug.lock.lock import SCHEMA, Lock, read_lock


@pytest.mark.parametrize("lock", [TRT, RTX])
def test_a_lock_is_read_as_it_was_written(lock, tmp_path):
    (tmp_path / "lock.json").write_text(to_json(lock))
    assert read_lock(tmp_path / "lock.json") == lock


def test_what_may_be_none_may_be_absent():
    document = json.loads(to_json(RTX))
    for field in ("gpu", "timing_cache", "tactics", "sites"):
        document.pop(field)
    assert from_json(Lock, SCHEMA, json.dumps(document), "x") == replace(RTX, sites=None)


def test_lists_that_may_be_none_are_filled_within():
    document = json.loads(to_json(TRT))
    document["sites"][0].pop("tactic")
    document["tactics"][0].pop("kernel")
    document["layers"][0].pop("cache_key")
    assert from_json(Lock, SCHEMA, json.dumps(document), "x") == TRT


@pytest.mark.parametrize("field", ["model", "target", "flags", "engine", "layers"])
def test_what_it_cannot_be_without_is_refused(field):
    document = json.loads(to_json(TRT))
    del document[field]
    with pytest.raises(DocumentError, match=field):
        from_json(Lock, SCHEMA, json.dumps(document), "x")


def test_winners_are_keys_and_hashes():
    assert TRT.winners == {"0xa": "0x1", "0xb": "0x2"}
    assert RTX.winners == {}
