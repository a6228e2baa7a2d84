from __future__ import annotations

from pathlib import Path

import pytest

from tests.bundle.samples import publish
from trtplug.cli.build_options import read_policy
from trtplug.errors import DocumentError, UsageError
from trtplug.lock.policy import Pin, TacticPolicy


def test_nothing_given_is_the_default():
    assert read_policy({}) == TacticPolicy()


def test_wishes_as_they_are_written():
    policy = read_policy({"pin": ("conv=0x1",), "ban": ("a*", "b"), "prefer": ("c*",)})
    assert policy.overrides.pins == (Pin(layer="conv", tactic="0x1"),)
    assert policy.overrides.bans == ("a*", "b")
    assert policy.overrides.prefers == ("c*",)


@pytest.mark.parametrize(
    ("given", "use"),
    [
        ({"timing_cache": True}, "use"),
        ({"timing_cache": False}, "fresh"),
        ({"require_cache": True}, "require"),
        ({"require_cache": False}, "use"),
    ],
)
def test_use_of_the_cache(given, use):
    assert read_policy(given).cache == use


def test_a_required_cache_that_is_not_used():
    with pytest.raises(UsageError, match="contradict"):
        read_policy({"require_cache": True, "timing_cache": False})


def test_a_lock_may_be_named_by_its_folder_or_bundle(tmp_path):
    assert read_policy({"locked": tmp_path / "x.json"}).locked == tmp_path / "x.json"
    bundle = tmp_path / "out"
    publish(bundle)
    (bundle / "sm_89" / "lock.json").write_text("{}")
    wanted = bundle / "sm_89" / "lock.json"
    assert read_policy({"locked": str(bundle / "sm_89")}).locked == wanted
    assert read_policy({"locked": bundle}).locked == wanted


def test_a_folder_without_a_lock(tmp_path):
    with pytest.raises(DocumentError):
        read_policy({"locked": Path(tmp_path)})
