"""What whole builds do not show; those are in `tests/end_to_end/`."""

from __future__ import annotations

from types import SimpleNamespace

from trtplug.backends.trt.config import set_strict_cache


def test_the_flag_for_misses_is_set_where_the_release_has_it():
    flags: list[str] = []
    config = SimpleNamespace(set_flag=flags.append)
    trt = SimpleNamespace(BuilderFlag=SimpleNamespace(ERROR_ON_TIMING_CACHE_MISS="miss"))
    assert set_strict_cache(trt, config) == []
    assert flags == ["miss"]


def test_a_release_without_it_replays_nothing():
    (problem,) = set_strict_cache(SimpleNamespace(BuilderFlag=SimpleNamespace()), None)
    assert problem.startswith("--locked: the installed TensorRT has no ERROR_ON_TIMING")
