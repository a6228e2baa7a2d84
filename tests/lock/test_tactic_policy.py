from __future__ import annotations

from pathlib import Path

import pytest

from trtplug.errors import UsageError
from trtplug.lock.policy import OVERRIDE_FLAGS, Pin, TacticOverrides, TacticPolicy

OVERRIDES = TacticOverrides(
    pins=(Pin(layer="b", tactic="0x1"), Pin(layer="a", tactic="k")), bans=("x*",), prefers=("y*",)
)


def test_without_overrides_there_is_no_flag():
    policy = TacticPolicy()
    policy.check()
    assert not policy.has_overrides
    assert policy.as_flags() == {}


def test_overrides_are_flags_whatever_the_order_of_pins():
    policy = TacticPolicy(overrides=OVERRIDES)
    policy.check()
    assert policy.has_overrides
    assert policy.as_flags() == {"pin": "a=k; b=0x1", "ban": "x*", "prefer": "y*"}
    assert tuple(policy.as_flags()) == OVERRIDE_FLAGS


@pytest.mark.parametrize(
    "policy",
    [
        TacticPolicy(overrides=OVERRIDES, locked=Path("lock.json")),
        TacticPolicy(overrides=OVERRIDES, cache="require"),
        TacticPolicy(cache="require", locked=Path("lock.json")),
    ],
)
def test_what_cannot_be_meant_is_refused(policy):
    with pytest.raises(UsageError) as caught:
        policy.check()
    assert caught.value.hint


def test_each_alone_is_meant():
    for policy in (
        TacticPolicy(cache="require"),
        TacticPolicy(cache="fresh", overrides=OVERRIDES),
        TacticPolicy(cache="fresh", locked=Path("lock.json")),
    ):
        policy.check()
