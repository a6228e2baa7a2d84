"""Which names of TensorRT's Python bindings trtplug uses, and which releases have them.

One row per name; a test compares every row, its parameters, and every name that the adapters use
with the real bindings of five releases. Read from the bindings of all releases from 10.0.1 to
11.4.0; `10.0` means that or earlier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OLDEST = "10.9"
"""The oldest release that trtplug drives."""

HOW_TO_GET_PLUGINS = (
    "plugins need the Python package tensorrt.plugin, which the TensorRT installed here lacks: "
    f"pip install 'tensorrt>={OLDEST}', or build with --plugin never"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One name of the bindings."""

    name: str
    """`Class.member`, `Enum.VALUE`, or a name of the module itself."""
    since: str = "10.0"
    """First release that has it."""
    removed: str | None = None
    """First release without it."""
    parameters: tuple[str, ...] | None = None
    """Of a function, without self; `=` after those with a default. None for anything else."""

    def in_version(self, version: str) -> bool:
        """Whether a release, such as `11.4.0.106`, has it."""
        return version_key(version) >= version_key(self.since) and not self.removed_in(version)

    def removed_in(self, version: str) -> bool:
        """Whether a release is the one that removed it, or a later one."""
        return self.removed is not None and version_key(version) >= version_key(self.removed)


def version_key(version: str) -> tuple[int, ...]:
    """Major and minor of a version, to compare."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:2])


def _name(name: str, since: str = "10.0", removed: str | None = None) -> Capability:
    """A class, an enum's value, or a property."""
    return Capability(name=name, since=since, removed=removed)


def _call(name: str, *parameters: str, since: str = "10.0") -> Capability:
    """A function. A class that is called is a row of `_name`: the test checks its calls."""
    return Capability(name=name, since=since, parameters=parameters)


_MODULE = (
    _name("Builder"),
    _name("BuilderFlag"),
    _name("HardwareCompatibilityLevel"),
    _name("IProgressMonitor"),
    _name("Logger"),
    _name("OnnxParser"),
    _name("OnnxParserFlag"),
    _name("PreviewFeature"),
    _name("Runtime"),
    _name("TacticSource"),
    _name("TilingOptimizationLevel", since="10.8"),
    _call("init_libnvinfer_plugins", "logger", "namespace"),
)

_BUILDER = (
    _call("Builder.build_serialized_network", "network", "config"),
    _call("Builder.create_builder_config"),
    _call("Builder.create_network", "flags="),
    _call("Builder.create_optimization_profile"),
    _call("Builder.get_plugin_registry"),
    _call("IPluginRegistry.load_library", "plugin_path"),
)

_NETWORK = (
    _call("INetworkDefinition.get_input", "index"),
    _name("INetworkDefinition.num_inputs"),
    _name("ITensor.is_shape_tensor"),
    _name("ITensor.name"),
    _name("ITensor.shape"),
    _name("NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS", since="10.9"),
    _name("NetworkDefinitionCreationFlag.STRONGLY_TYPED"),
    _call("IOptimizationProfile.set_shape", "input", "min", "opt", "max"),
)

_PARSER = (
    _call("OnnxParser.clear_flag", "flag"),
    _call("OnnxParser.get_error", "index"),
    _name("OnnxParser.num_errors"),
    _call("OnnxParser.parse", "model", "path="),
    _call("OnnxParser.parse_from_file", "model"),
    _call("OnnxParser.set_flag", "flag"),
    _call("ParserError.desc"),
    _call("ParserError.node_name"),
    _call("ParserError.node_operator"),
    _name("OnnxParserFlag.ADJUST_FOR_DLA", since="10.16"),
    _name("OnnxParserFlag.ENABLE_PLUGIN_OVERRIDE", since="10.15"),
    _name("OnnxParserFlag.ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA", since="10.11"),
    _name("OnnxParserFlag.NATIVE_INSTANCENORM"),
    _name("OnnxParserFlag.REPORT_CAPABILITY_DLA", since="10.15"),
)

_CONFIG = (
    _call("IBuilderConfig.add_optimization_profile", "profile"),
    _name("IBuilderConfig.all_build_routes", since="11.1"),
    _name("IBuilderConfig.avg_timing_iterations"),
    _name("IBuilderConfig.build_route", since="11.1"),
    _name("IBuilderConfig.builder_optimization_level"),
    _call("IBuilderConfig.clear_flag", "flag"),
    _call("IBuilderConfig.create_timing_cache", "serialized_timing_cache"),
    _call("IBuilderConfig.get_tactic_sources"),
    _name("IBuilderConfig.hardware_compatibility_level"),
    _name("IBuilderConfig.l2_limit_for_tiling", since="10.8"),
    _name("IBuilderConfig.max_aux_streams"),
    _name("IBuilderConfig.max_num_tactics", since="10.4"),
    _name("IBuilderConfig.profiling_verbosity"),
    _name("IBuilderConfig.progress_monitor"),
    _call("IBuilderConfig.set_flag", "flag"),
    _call("IBuilderConfig.set_memory_pool_limit", "pool", "pool_size"),
    _call("IBuilderConfig.set_preview_feature", "feature", "enable"),
    _call("IBuilderConfig.set_tactic_sources", "tactic_sources"),
    _call("IBuilderConfig.set_timing_cache", "cache", "ignore_mismatch"),
    _name("IBuilderConfig.tiling_optimization_level", since="10.8"),
    _name("HardwareCompatibilityLevel.AMPERE_PLUS"),
    _name("HardwareCompatibilityLevel.NONE"),
    _name("HardwareCompatibilityLevel.SAME_COMPUTE_CAPABILITY", since="10.9"),
    _name("MemoryPoolType.TACTIC_SHARED_MEMORY"),
    _name("MemoryPoolType.WORKSPACE"),
    _name("PreviewFeature.ALIASED_PLUGIN_IO_10_03", since="10.3"),
    _name("PreviewFeature.MULTIDEVICE_RUNTIME_10_16", since="10.16", removed="11.0"),
    _name("PreviewFeature.PROFILE_SHARING_0806", removed="11.0"),
    _name("PreviewFeature.RUNTIME_ACTIVATION_RESIZE_10_10", since="10.10"),
    _name("ProfilingVerbosity.DETAILED"),
    _name("TacticSource.CUBLAS", removed="11.0"),
    _name("TacticSource.CUBLAS_LT", removed="11.0"),
    _name("TacticSource.CUDNN", removed="11.0"),
    _name("TacticSource.EDGE_MASK_CONVOLUTIONS"),
    _name("TacticSource.JIT_CONVOLUTIONS"),
    _name("TilingOptimizationLevel.FAST", since="10.8"),
    _name("TilingOptimizationLevel.FULL", since="10.8"),
    _name("TilingOptimizationLevel.MODERATE", since="10.8"),
    _name("TilingOptimizationLevel.NONE", since="10.8"),
)

_FLAGS = (
    _name("BuilderFlag.BF16", removed="11.0"),
    _name("BuilderFlag.DEBUG"),
    _name("BuilderFlag.DIRECT_IO"),
    _name("BuilderFlag.DISABLE_COMPILATION_CACHE"),
    _name("BuilderFlag.DISTRIBUTIVE_INDEPENDENCE", since="10.12"),
    _name("BuilderFlag.EDITABLE_TIMING_CACHE", since="10.8"),
    _name("BuilderFlag.ERROR_ON_TIMING_CACHE_MISS"),
    _name("BuilderFlag.EXCLUDE_LEAN_RUNTIME"),
    _name("BuilderFlag.FP16", removed="11.0"),
    _name("BuilderFlag.FP4", since="10.8", removed="11.0"),
    _name("BuilderFlag.FP8", removed="11.0"),
    _name("BuilderFlag.INT4", since="10.1", removed="11.0"),
    _name("BuilderFlag.INT8", removed="11.0"),
    _name("BuilderFlag.MONITOR_MEMORY", since="10.6"),
    _name("BuilderFlag.OBEY_PRECISION_CONSTRAINTS", removed="11.0"),
    _name("BuilderFlag.PREFER_PRECISION_CONSTRAINTS", removed="11.0"),
    _name("BuilderFlag.REFIT"),
    _name("BuilderFlag.REFIT_IDENTICAL"),
    _name("BuilderFlag.REJECT_EMPTY_ALGORITHMS", removed="11.0"),
    _name("BuilderFlag.SPARSE_WEIGHTS"),
    _name("BuilderFlag.STRICT_NANS", since="10.6"),
    _name("BuilderFlag.STRIP_PLAN"),
    _name("BuilderFlag.TF32"),
    _name("BuilderFlag.VERSION_COMPATIBLE"),
    _name("BuilderFlag.WEIGHT_STREAMING"),
)

_CACHE = (
    _call("ITimingCache.combine", "input_cache", "ignore_mismatch"),
    _call("ITimingCache.query", "key", since="10.8"),
    _call("ITimingCache.queryKeys", since="10.8"),
    _call("ITimingCache.serialize"),
    _call("ITimingCache.update", "key", "value", since="10.8"),
    _call("TimingCacheKey.parse", "text", since="10.8"),
    _name("TimingCacheValue", since="10.8"),
    _name("TimingCacheValue.tacticHash", since="10.8"),
    _name("TimingCacheValue.timingMSec", since="10.8"),
)

_LOG = (
    _name("Logger.ERROR"),
    _name("Logger.INFO"),
    _name("Logger.VERBOSE"),
    _call("Logger.log", "severity", "msg"),
)

_PLUGINS = (
    _name("IPluginV3"),
    _name("QuickPluginCreationRequest", since="10.9"),
    _call("get_plugin_registry"),
    _name("IPluginRegistry.all_creators"),
    _call("IPluginRegistry.register_creator", "creator", "plugin_namespace="),
)

_RUN = (
    _call("Runtime.deserialize_cuda_engine", "serialized_engine"),
    _name("Runtime.engine_host_code_allowed"),
    _call("Runtime.get_plugin_registry"),
    _call("ICudaEngine.create_engine_inspector"),
    _call("ICudaEngine.create_execution_context", "strategy="),
    _call("ICudaEngine.get_tensor_dtype", "name"),
    _call("ICudaEngine.get_tensor_mode", "name"),
    _call("ICudaEngine.get_tensor_name", "index"),
    _call("ICudaEngine.get_tensor_profile_shape", "name", "profile_index"),
    _name("ICudaEngine.num_io_tensors"),
    _name("ICudaEngine.num_optimization_profiles"),
    _call("EngineInspector.get_engine_information", "format"),
    _call("IExecutionContext.execute_async_v3", "stream_handle"),
    _call("IExecutionContext.get_max_output_size", "name"),
    _call("IExecutionContext.infer_shapes"),
    _call("IExecutionContext.set_input_shape", "name", "shape"),
    _call("IExecutionContext.set_optimization_profile_async", "profile_index", "stream_handle"),
    _call("IExecutionContext.set_tensor_address", "name", "memory"),
    _name("LayerInformationFormat.JSON"),
    _name("TensorIOMode.INPUT"),
    _name("DataType.itemsize"),
    _name("DataType.name"),
)

_REMOVED = (
    _name("IBuilderConfig.algorithm_selector", removed="11.0"),
    _name("IBuilderConfig.int8_calibrator", removed="11.0"),
    _name("IBuilderConfig.set_calibration_profile", removed="11.0"),
    _name("NetworkDefinitionCreationFlag.EXPLICIT_BATCH", removed="11.0"),
)
"""Never used here; listed so that an error can say what replaces them."""

CAPABILITIES: tuple[Capability, ...] = (
    *_MODULE,
    *_BUILDER,
    *_NETWORK,
    *_PARSER,
    *_CONFIG,
    *_FLAGS,
    *_CACHE,
    *_LOG,
    *_PLUGINS,
    *_RUN,
    *_REMOVED,
)

_ADVICE = {
    "BuilderFlag.FP16": "--precision fp16, which converts the model: networks are strongly typed",
    "BuilderFlag.BF16": "--precision bf16, which converts the model: networks are strongly typed",
    **dict.fromkeys(
        ("BuilderFlag.FP8", "BuilderFlag.FP4", "BuilderFlag.INT8", "BuilderFlag.INT4"),
        "a quantized model: TensorRT reads its QuantizeLinear and DequantizeLinear nodes",
    ),
    **dict.fromkeys(
        ("IBuilderConfig.int8_calibrator", "IBuilderConfig.set_calibration_profile"),
        "a quantization tool that writes Q/DQ nodes into the model",
    ),
    **dict.fromkeys(
        ("BuilderFlag.OBEY_PRECISION_CONSTRAINTS", "BuilderFlag.PREFER_PRECISION_CONSTRAINTS"),
        "--keep-fp32 GLOB, which leaves nodes in FP32: networks are strongly typed",
    ),
    **dict.fromkeys(
        ("IBuilderConfig.algorithm_selector", "BuilderFlag.REJECT_EMPTY_ALGORITHMS"),
        "--pin, --ban and --prefer, which edit the timing cache",
    ),
    "NetworkDefinitionCreationFlag.EXPLICIT_BATCH": "leave it out: every batch is explicit",
    **dict.fromkeys(
        ("TacticSource.CUBLAS", "TacticSource.CUBLAS_LT", "TacticSource.CUDNN"),
        "leave it out: TensorRT 11 has all kernels itself",
    ),
}
"""Removed name -> what to use or do instead."""


def find_capability(name: str) -> Capability | None:
    """The row of a name."""
    return next((c for c in CAPABILITIES if c.name == name), None)


def replacement_of(name: str) -> str:
    """What to use instead of a removed name; empty where nothing replaces it."""
    return _ADVICE.get(name, "")


def names_in(enum: str, version: str) -> tuple[str, ...]:
    """Values of an enum that a release has, as far as trtplug uses them."""
    prefix = f"{enum}."
    return tuple(
        c.name.removeprefix(prefix)
        for c in CAPABILITIES
        if c.name.startswith(prefix) and c.in_version(version)
    )
