"""A lock that contradicts itself, in every way that it can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lock.locks import RTX, TRT, tactic
from trtplug.lock.check import consistency_problems

NAMED = replace(TRT, tactics=tuple(replace(t, kernel="fprop") for t in TRT.tactics))


def flags(**given: str):
    return {"flags": {"tf32": "on", **given}}


def test_locks_as_builds_write_them_agree_with_themselves():
    assert consistency_problems(TRT) == consistency_problems(RTX) == ()


@pytest.mark.parametrize(
    "pin",
    ["conv1=0x2", "conv1=0x02", "conv1_myl0_2=fprop", "relu0=f*", "conv0+relu0=0x1; conv1=f*"],
)
def test_pins_are_found_by_operation_layer_and_node(pin: str):
    assert consistency_problems(replace(NAMED, **flags(pin=pin, ban="cudnn*", prefer="x*"))) == ()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tactics": (*TRT.tactics[:1], *TRT.tactics)}, "0xa: listed 2 times"),
        ({"tactics": TRT.tactics[:1]}, "timing_cache.keys is not 1, "),
        (
            {"timing_cache": replace(TRT.timing_cache, keys=10**4000)},
            "timing_cache.keys is not 2, ",
        ),
        (
            {"tactics": (TRT.tactics[0], tactic("0xb", "0x7"))},
            "conv1_myl0_2: tactic 0x2, its key has 0x7",
        ),
        (flags(pin="conv1=0x9"), "flag pin: conv1=0x9 does not match the tactics"),
        (flags(pin="conv9=0x2"), "flag pin: conv9=0x2 does not match the tactics"),
        (flags(pin="conv1=fprop"), "flag pin: conv1=fprop does not match the tactics"),
        (flags(pin="nonsense"), "flags: --pin 'nonsense' is not LAYER=TACTIC"),
        (flags(ban='"x'), "flags: "),
        (flags(ban="x; fp*"), "conv0+relu0_myl0_1: uses fprop, which is banned"),
    ],
)
def test_each_contradiction_is_told(fields: dict[str, object], words: str):
    problems = consistency_problems(replace(TRT, **fields))
    assert any(p.startswith(words) for p in problems), problems
