from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.backends.double import DoubleBackend
from tests.lock.locks import RTX, TRT
from trtplug.document import to_json
from trtplug.errors import (
    DocumentError,
    LockMismatchError,
    LockUnqualifiedError,
    OptionUnsupportedError,
    UsageError,
)
from trtplug.lock.check import check_lock
from trtplug.lock.policy import (
    TacticOverrides,
    TacticPolicy,
    check_policy,
    open_lock,
    override_flags,
)


@pytest.mark.parametrize(
    ("policy", "option"),
    [
        (TacticPolicy(overrides=TacticOverrides(bans=("x",))), "--ban"),
        (TacticPolicy(overrides=TacticOverrides(prefers=("x",))), "--prefer"),
        (TacticPolicy(cache="require"), "--require-cache"),
    ],
)
def test_a_backend_without_timing_caches_has_no_tactics_to_choose(policy, option):
    with pytest.raises(OptionUnsupportedError, match=option):
        check_policy(policy, DoubleBackend())


def test_what_such_a_backend_can_do(tmp_path):
    check_policy(TacticPolicy(), DoubleBackend())
    check_policy(TacticPolicy(cache="fresh", locked=tmp_path / "lock.json"), DoubleBackend())


def test_contradictions_come_first():
    policy = TacticPolicy(overrides=TacticOverrides(bans=("x",)), locked=Path("lock.json"))
    with pytest.raises(UsageError):
        check_policy(policy, DoubleBackend())


def test_a_lock_is_read_where_one_is_named(tmp_path):
    assert open_lock(TacticPolicy()) is None
    with pytest.raises(DocumentError):
        open_lock(TacticPolicy(locked=tmp_path / "absent.json"))
    (tmp_path / "lock.json").write_text(to_json(TRT))
    assert open_lock(TacticPolicy(locked=tmp_path / "lock.json")) == TRT


def test_a_lock_is_for_one_backend_and_one_machine():
    backend = DoubleBackend()
    lock = replace(RTX, backend=backend.name, backend_version=backend.version())
    check_lock(lock, "lock.json", backend)
    with pytest.raises(LockMismatchError, match="backend: "):
        check_lock(replace(lock, backend="other"), "lock.json", backend)
    with pytest.raises(LockUnqualifiedError, match="backend version"):
        check_lock(replace(lock, backend_version="0.1"), "lock.json", backend)
    with pytest.raises(LockUnqualifiedError, match="gpu: none, not NVIDIA H200"):
        check_lock(replace(lock, gpu=TRT.gpu), "lock.json", backend)


def test_a_locks_overrides_come_with_it():
    lock = replace(TRT, flags={"tf32": "on", "pin": "a=0x1", "ban": "x*"})
    assert override_flags(lock) == {"pin": "a=0x1", "ban": "x*"}
    assert override_flags(TRT) == {}
