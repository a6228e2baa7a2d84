"""Runtime, engine, inspector, context."""

from __future__ import annotations

import json
import math
import re

from tensorrt.enums import DataType, LayerInformationFormat, TensorIOMode
from tensorrt.logger import Logger
from tensorrt.plan import read_plan
from tensorrt.plugin_calls import revive, run
from tensorrt.plugins import IPluginRegistry, get_plugin_registry
from tensorrt.release import VERSION, Native, crash_if_told, told_to_fail


class EngineInspector(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.EngineInspector: No constructor defined!")

    def get_engine_information(self, format: LayerInformationFormat) -> str:
        return json.dumps(self._plan["inspector"], indent=1)


class IExecutionContext(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.IExecutionContext: No constructor defined!")

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        self._profile = profile_index
        return 0 <= profile_index < len(self._plan["profiles"])

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        low, _, high = self._plan["profiles"][self._profile][name]
        fits = all(a <= b <= c for a, b, c in zip(low, shape, high, strict=True))
        if fits:
            self._shapes[name] = tuple(shape)
        else:
            self._logger.log(Logger.ERROR, f"set_input_shape: {name} is out of the profile's range")
        return fits

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self._addresses[name] = memory
        return True

    def infer_shapes(self) -> list[str]:
        return [i["name"] for i in self._plan["inputs"] if i["name"] not in self._shapes]

    def get_max_output_size(self, name: str) -> int:
        if self.infer_shapes():
            return -1
        (found,) = (o for o in self._plan["outputs"] if o["name"] == name)
        return math.prod(max(n, 1) for n in found["shape"]) * DataType(found["dtype"]).itemsize

    def execute_async_v3(self, stream_handle: int) -> bool:
        crash_if_told("execute")
        names = {t["name"] for t in (*self._plan["inputs"], *self._plan["outputs"])}
        missing = [n for n in names if not self._addresses.get(n)] + self.infer_shapes()
        if missing or told_to_fail("execute") or not stream_handle:
            self._logger.log(Logger.ERROR, f"enqueueV3: no address or shape for {sorted(missing)}")
            return False
        for plugin, saved in zip(self._plugins, self._plan["plugins"], strict=True):
            run(plugin, saved)
        return True


class ICudaEngine(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ICudaEngine: No constructor defined!")

    @property
    def num_io_tensors(self) -> int:
        return len(self._tensors)

    @property
    def num_optimization_profiles(self) -> int:
        return len(self._plan["profiles"])

    def get_tensor_name(self, index: int) -> str:
        return list(self._tensors)[index]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        is_input = any(t["name"] == name for t in self._plan["inputs"])
        return TensorIOMode.INPUT if is_input else TensorIOMode.OUTPUT

    def get_tensor_dtype(self, name: str) -> DataType:
        return DataType(self._tensors[name]["dtype"])

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        return [tuple(s) for s in self._plan["profiles"][profile_index][name]]

    def create_engine_inspector(self) -> EngineInspector:
        inspector = object.__new__(EngineInspector)
        inspector._plan = self._plan
        return inspector

    def create_execution_context(self, strategy: int = 0) -> IExecutionContext:
        context = object.__new__(IExecutionContext)
        context._plan, context._logger, context._profile = self._plan, self._logger, 0
        context._shapes, context._addresses, context._plugins = {}, {}, self._plugins
        return context


class Runtime(Native):
    engine_host_code_allowed = False

    def __init__(self, logger: Logger) -> None:
        self._logger = logger

    def get_plugin_registry(self) -> IPluginRegistry:
        return get_plugin_registry()

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        crash_if_told("deserialize")
        read = read_plan(bytes(serialized_engine))
        problem = _problem(read, self.engine_host_code_allowed)
        if problem or told_to_fail("deserialize"):
            self._logger.log(Logger.ERROR, f"IRuntime::deserializeCudaEngine: Error: {problem}")
            return None
        plugins = [revive(saved) for saved in read[0]["plugins"]]
        if None in plugins:
            self._logger.log(Logger.ERROR, "IPluginRegistry::getCreator: cannot find the plugin")
            return None
        engine = object.__new__(ICudaEngine)
        engine._plan, engine._logger, engine._plugins = read[0], self._logger, plugins
        engine._tensors = {t["name"]: t for t in (*read[0]["inputs"], *read[0]["outputs"])}
        return engine


def _problem(read: tuple[dict, bytes] | None, host_code: bool) -> str:
    if read is None:
        return "the plan is corrupt"
    plan, version = read
    if plan["version_compatible"]:
        return "" if host_code else "host code in the plan is not allowed"
    own = bytes(min(255, int(n)) for n in re.findall(r"\d+", VERSION)[:4])
    return "" if version == own else "the plan was built by another version"
