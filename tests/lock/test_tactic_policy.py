from __future__ import annotations

from pathlib import Path

import pytest

from trtplug.errors import UsageError
from trtplug.lock.pins import Pin, TacticOverrides
from trtplug.lock.policy import OVERRIDE_FLAGS, TacticPolicy

WISHES = TacticOverrides(
    pins=(Pin(layer="b", tactic="0x1"), Pin(layer="a", tactic="k")), bans=("x*",), prefers=("y*",)
)


def test_without_wishes_there_is_no_flag():
    policy = TacticPolicy()
    policy.check()
    assert not policy.wished
    assert policy.as_flags() == {}


def test_wishes_are_flags_whatever_the_order_of_pins():
    policy = TacticPolicy(wishes=WISHES)
    policy.check()
    assert policy.wished
    assert policy.as_flags() == {"pin": "a=k; b=0x1", "ban": "x*", "prefer": "y*"}
    assert tuple(policy.as_flags()) == OVERRIDE_FLAGS


@pytest.mark.parametrize(
    "policy",
    [
        TacticPolicy(wishes=WISHES, locked=Path("lock.json")),
        TacticPolicy(wishes=WISHES, cache="require"),
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
        TacticPolicy(cache="fresh", wishes=WISHES),
        TacticPolicy(cache="fresh", locked=Path("lock.json")),
    ):
        policy.check()
