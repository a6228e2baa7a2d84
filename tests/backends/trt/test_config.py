"""What whole builds do not show; those are in `tests/end_to_end/`."""

from __future__ import annotations

from types import SimpleNamespace

from trtplug.backends.trt.config import _set_tactic_sources, set_strict_cache


def test_the_flag_for_misses_is_set_where_the_release_has_it():
    flags: list[str] = []
    config = SimpleNamespace(set_flag=flags.append)
    trt = SimpleNamespace(BuilderFlag=SimpleNamespace(ERROR_ON_TIMING_CACHE_MISS="miss"))
    assert set_strict_cache(trt, config) == []
    assert flags == ["miss"]


def test_a_release_without_it_replays_nothing():
    (problem,) = set_strict_cache(SimpleNamespace(BuilderFlag=SimpleNamespace()), None)
    assert problem.startswith("--locked: the installed TensorRT has no ERROR_ON_TIMING")


def test_a_mask_of_sources_that_tensorrt_refuses_is_a_problem():
    trt = SimpleNamespace(TacticSource=SimpleNamespace(CUDNN=2, JIT_CONVOLUTIONS=4))
    asked: list[int] = []

    def refuse(mask: int) -> bool:
        asked.append(mask)
        return False

    config = SimpleNamespace(get_tactic_sources=lambda: 0b10000, set_tactic_sources=refuse)
    (problem,) = _set_tactic_sources(trt, config, ("+CUDNN", "-JIT_CONVOLUTIONS"))
    assert asked == [0b00100]
    assert problem == "--tactic-source: TensorRT refused the mask 0x4 of sources"
    config.set_tactic_sources = lambda _: True
    assert _set_tactic_sources(trt, config, ("+CUDNN",)) == []
