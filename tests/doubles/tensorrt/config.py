"""The builder configuration."""

from __future__ import annotations

import json

from tensorrt.enums import (
    BuilderFlag,
    HardwareCompatibilityLevel,
    PreviewFeature,
    ProfilingVerbosity,
    TacticSource,
    TilingOptimizationLevel,
)
from tensorrt.release import Native, drop_missing, value
from tensorrt.timing_cache import ITimingCache, fits, open_cache

ROUTES = {
    "tuner_version": "1",
    "tuner_options": [
        {"option": "-double_fusion", "allowed_values": ["on", "off"], "default_value": "on"},
        {"option": "-double_tile", "allowed_values": ["1", "2"], "default_value": "1"},
    ],
}


class IProgressMonitor(Native):
    """Subclassed in Python; its attributes are the subclass's own."""

    def __init__(self) -> None:
        pass

    def __setattr__(self, name: str, given: object) -> None:
        object.__setattr__(self, name, given)

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        raise NotImplementedError

    def step_complete(self, phase_name: str, step: int) -> bool:
        raise NotImplementedError

    def phase_finish(self, phase_name: str) -> None:
        raise NotImplementedError


@drop_missing
class IBuilderConfig(Native):
    progress_monitor = value("progress_monitor", None)
    profiling_verbosity = value("profiling_verbosity", ProfilingVerbosity.LAYER_NAMES_ONLY)
    builder_optimization_level = value("builder_optimization_level", 3)
    avg_timing_iterations = value("avg_timing_iterations", 1)
    max_num_tactics = value("max_num_tactics", -1)
    max_aux_streams = value("max_aux_streams", -1)
    hardware_compatibility_level = value("hardware", HardwareCompatibilityLevel.NONE)
    tiling_optimization_level = value("tiling", TilingOptimizationLevel.NONE)
    l2_limit_for_tiling = value("l2_limit_for_tiling", -1)
    int8_calibrator = value("int8_calibrator", None, removed="11.0")
    algorithm_selector = value("algorithm_selector", None, removed="11.0")
    build_route = value("build_route", "", since="11.1")
    all_build_routes = value("all_build_routes", json.dumps(ROUTES), since="11.1")

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.IBuilderConfig: No constructor defined!")

    def set_flag(self, flag: BuilderFlag) -> None:
        self._flags.add(BuilderFlag(flag))

    def clear_flag(self, flag: BuilderFlag) -> None:
        self._flags.discard(BuilderFlag(flag))

    def get_flag(self, flag: BuilderFlag) -> bool:
        return flag in self._flags

    def set_memory_pool_limit(self, pool: object, pool_size: int) -> None:
        self._pools[pool] = pool_size

    def get_memory_pool_limit(self, pool: object) -> int:
        return self._pools.get(pool, 2**34)

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        # Seen in 10.x: a bit that is no source is refused, and nothing changes.
        if tactic_sources & ~sum(1 << int(s) for s in TacticSource):
            return False
        self._tactic_sources = tactic_sources
        return True

    def get_tactic_sources(self) -> int:
        return self._tactic_sources

    def set_preview_feature(self, feature: PreviewFeature, enable: bool) -> None:
        self._previews[PreviewFeature(feature)] = enable

    def get_preview_feature(self, feature: PreviewFeature) -> bool:
        return self._previews.get(feature, False)

    def add_optimization_profile(self, profile: object) -> int:
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache | None:
        return open_cache(bytes(serialized_timing_cache), self._logger)

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:
        if not fits(cache, ignore_mismatch, self._logger):
            return False
        self._cache = cache
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        return self._cache


def _put_route(self: IBuilderConfig, given: str) -> None:
    known = {o["option"] for o in ROUTES["tuner_options"]}
    if all(part.partition("=")[0] in known for part in given.split()):
        object.__setattr__(self, "_build_route", given)


if "build_route" in vars(IBuilderConfig):
    # Validated against the list; one that does not fit changes nothing.
    IBuilderConfig.build_route = property(
        lambda self: getattr(self, "_build_route", ""), _put_route
    )
    IBuilderConfig.all_build_routes = property(lambda _: json.dumps(ROUTES))


def new_config(logger: object = None) -> IBuilderConfig:
    """What `Builder.create_builder_config` gives: TF32 is on, every tactic source too."""
    config = object.__new__(IBuilderConfig)
    config._logger = logger
    config._flags = {BuilderFlag.TF32}
    config._pools, config._previews, config._profiles, config._cache = {}, {}, [], None
    config._tactic_sources = sum(1 << int(s) for s in TacticSource)
    return config
