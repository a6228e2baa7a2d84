"""Builder, network and profiles."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tensorrt.config import IBuilderConfig, new_config
from tensorrt.logger import Logger
from tensorrt.network import INetworkDefinition, empty_network
from tensorrt.plan import write_plan
from tensorrt.plugins import IPluginRegistry, get_plugin_registry
from tensorrt.release import Native, crash_if_told, script, told_to_fail
from tensorrt.tactics import BuildError, choose_kernels

if TYPE_CHECKING:
    from tensorrt.host import IHostMemory

PHASES = ("Building engine", "Building engine from subgraph")


class IOptimizationProfile(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.IOptimizationProfile: No constructor defined!")

    def set_shape(
        self, input: str, min: tuple[int, ...], opt: tuple[int, ...], max: tuple[int, ...]
    ) -> None:
        if not all(a <= b <= c for a, b, c in zip(min, opt, max, strict=True)):
            raise ValueError("Shape provided for min is inconsistent with other shapes.")
        self._shapes[input] = (tuple(min), tuple(opt), tuple(max))

    def get_shape(self, input: str) -> list[tuple[int, ...]]:
        return list(self._shapes.get(input, ()))


class Builder(Native):
    max_threads = 1

    def __init__(self, logger: Logger) -> None:
        if script().get("full"):
            # As pybind11 says it where the library returns no builder.
            raise TypeError("pybind11::init(): factory function returned nullptr")
        self._logger = logger

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        return empty_network(flags)

    def create_builder_config(self) -> IBuilderConfig:
        return new_config(self._logger)

    def create_optimization_profile(self) -> IOptimizationProfile:
        profile = object.__new__(IOptimizationProfile)
        profile._shapes = {}
        return profile

    def get_plugin_registry(self) -> IPluginRegistry:
        return get_plugin_registry()

    def build_serialized_network(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> IHostMemory | None:
        crash_if_told("build")
        network._finish()
        monitor = config.progress_monitor
        try:
            if told_to_fail("build"):
                raise BuildError("the double was told to fail")
            profiles = _checked_profiles(network, config)
            if monitor is not None:
                monitor.phase_start(PHASES[0], None, 2)
                monitor.phase_start(PHASES[1], PHASES[0], len(network._nodes))
            time.sleep(script().get("sleep_s", 0))
            layers = choose_kernels(network, config, self._logger)
            if monitor is not None:
                for phase, steps in ((PHASES[1], len(network._nodes)), (PHASES[0], 2)):
                    for step in range(steps):
                        monitor.step_complete(phase, step)
                    monitor.phase_finish(phase)
        except BuildError as error:
            self._logger.log(Logger.ERROR, f"IBuilder::buildSerializedNetwork: Error: {error}")
            return None
        return write_plan(network, config, layers, profiles)


def _checked_profiles(network: INetworkDefinition, config: IBuilderConfig) -> list[dict]:
    """Shapes of every input in every profile; a dynamic input needs a shape in each."""
    profiles = config._profiles or [None]
    found = []
    for position, profile in enumerate(profiles):
        shapes = {}
        for tensor in network._inputs:
            given = profile._shapes.get(tensor.name) if profile is not None else None
            if given is None and -1 in tensor.shape:
                raise BuildError(
                    f"Network has dynamic or shape inputs, but profile {position} has no shape "
                    f"for {tensor.name}"
                )
            shapes[tensor.name] = given or (tensor.shape,) * 3
        found.append(shapes)
    return found
