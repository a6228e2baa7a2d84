"""The parts of a replay; whole ones are in `tests/end_to_end/test_trt_lock.py`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.build.test_strategy import OUTCOME
from tests.lock.locks import TRT, tactic
from tests.timing.cache_stand_in import StandIn
from trtplug.build.command import BuildCommand
from trtplug.build.replay import ReplayStrategy, lock_tables
from trtplug.build.strategy import Caching
from trtplug.errors import LockMismatchError
from trtplug.lock.policy import TacticPolicy


def test_a_locks_tactics_as_tables_with_the_builders_names():
    named = replace(tactic("0xa", "0x1", "conv0", ["Conv.0"]), kernel="fprop")
    nameless = tactic("0xb", "0x2")
    (table,) = lock_tables(replace(TRT, tactics=(named, nameless)), {"conv0": "Conv.0"})
    assert (table.op, table.key, table.onnx_layers) == ("conv0", "0xa", ("conv0",))
    assert (table.chosen.kernel, table.selected, table.margin) == ("fprop", "0x1", None)
    assert lock_tables(replace(TRT, tactics=None), {}) == ()


@pytest.fixture
def strategy(tmp_path):
    caching = Caching(
        api=StandIn(), store=None, identity=None, use="use", work=tmp_path, model_sha256=""
    )
    command = BuildCommand(
        model=tmp_path / "m.onnx",
        targets=(),
        out=tmp_path,
        policy=TacticPolicy(locked=tmp_path / "lock.json"),
    )
    context = SimpleNamespace(command=command)
    return ReplayStrategy(context, None, None, [tmp_path], TRT, caching)


def test_a_builder_that_refuses_did_not_replay(strategy):
    refused = replace(OUTCOME, status="failed", engine_sha256="", reasons=("miss",))
    error = strategy.explain_failure(refused)
    assert isinstance(error, LockMismatchError)
    assert "its cache alone: miss" in error.message
    # An engine that fails its trial run, a crash, a time limit: the builder's own words say it all.
    for status in ("crashed", "timeout", "refused"):
        assert strategy.explain_failure(replace(refused, status=status)) is None
    assert strategy.explain_failure(replace(refused, engine_sha256="ab")) is None


def test_nothing_of_a_replay_is_kept(strategy):
    assert not strategy.keeps(None)
