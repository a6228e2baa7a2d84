"""Which names of TensorRT's Python bindings trtplug uses, and which releases have them.

A test compares every name, its parameters, and every name that the adapters use
with the real bindings of five releases. Read from the bindings of all releases from 10.0.1 to
11.4.0; `10.0` means that or earlier.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def _names(
    owner: str, names: str, since: str = "10.0", removed: str | None = None
) -> Iterator[Capability]:
    """Values of an enum or properties of a class, between spaces; without an owner, classes."""
    for name in names.split():
        whole = f"{owner}.{name}".lstrip(".")
        yield Capability(name=whole, since=since, removed=removed)


def _call(name: str, *parameters: str, since: str = "10.0") -> Capability:
    """A function. A class that is called is in a row of `_names`: the test checks its calls."""
    return Capability(name=name, since=since, parameters=parameters)


CAPABILITIES: tuple[Capability, ...] = (
    *_names(
        "",
        "Builder BuilderFlag HardwareCompatibilityLevel IPluginV3 IProgressMonitor Logger "
        "OnnxParser OnnxParserFlag PreviewFeature Runtime TacticSource",
    ),
    *_names("", "TilingOptimizationLevel TimingCacheValue", since="10.8"),
    *_names("", "QuickPluginCreationRequest", since="10.9"),
    *_names(
        "BuilderFlag",
        "DEBUG DIRECT_IO DISABLE_COMPILATION_CACHE ERROR_ON_TIMING_CACHE_MISS "
        "EXCLUDE_LEAN_RUNTIME REFIT REFIT_IDENTICAL SPARSE_WEIGHTS STRIP_PLAN TF32 "
        "VERSION_COMPATIBLE WEIGHT_STREAMING",
    ),
    *_names(
        "BuilderFlag",
        "BF16 FP16 FP8 INT8 OBEY_PRECISION_CONSTRAINTS PREFER_PRECISION_CONSTRAINTS "
        "REJECT_EMPTY_ALGORITHMS",
        removed="11.0",
    ),
    *_names("BuilderFlag", "INT4", since="10.1", removed="11.0"),
    *_names("BuilderFlag", "MONITOR_MEMORY STRICT_NANS", since="10.6"),
    *_names("BuilderFlag", "EDITABLE_TIMING_CACHE", since="10.8"),
    *_names("BuilderFlag", "FP4", since="10.8", removed="11.0"),
    *_names("BuilderFlag", "DISTRIBUTIVE_INDEPENDENCE", since="10.12"),
    *_names("DataType", "itemsize name"),
    *_names("HardwareCompatibilityLevel", "AMPERE_PLUS NONE"),
    *_names("HardwareCompatibilityLevel", "SAME_COMPUTE_CAPABILITY", since="10.9"),
    *_names(
        "IBuilderConfig",
        "avg_timing_iterations builder_optimization_level hardware_compatibility_level "
        "max_aux_streams profiling_verbosity progress_monitor",
    ),
    *_names(
        "IBuilderConfig",
        "algorithm_selector int8_calibrator set_calibration_profile",
        removed="11.0",
    ),
    *_names("IBuilderConfig", "max_num_tactics", since="10.4"),
    *_names("IBuilderConfig", "l2_limit_for_tiling tiling_optimization_level", since="10.8"),
    *_names("IBuilderConfig", "all_build_routes build_route", since="11.1"),
    *_names("ICudaEngine", "num_io_tensors num_optimization_profiles"),
    *_names("INetworkDefinition", "num_inputs"),
    *_names("IPluginRegistry", "all_creators"),
    *_names("ITensor", "is_shape_tensor name shape"),
    *_names("LayerInformationFormat", "JSON"),
    *_names("Logger", "ERROR INFO VERBOSE"),
    *_names("MemoryPoolType", "TACTIC_SHARED_MEMORY WORKSPACE"),
    *_names("NetworkDefinitionCreationFlag", "STRONGLY_TYPED"),
    *_names("NetworkDefinitionCreationFlag", "EXPLICIT_BATCH", removed="11.0"),
    *_names("NetworkDefinitionCreationFlag", "PREFER_AOT_PYTHON_PLUGINS", since="10.9"),
    *_names("OnnxParser", "num_errors"),
    *_names("OnnxParserFlag", "NATIVE_INSTANCENORM"),
    *_names("OnnxParserFlag", "ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA", since="10.11"),
    *_names("OnnxParserFlag", "ENABLE_PLUGIN_OVERRIDE REPORT_CAPABILITY_DLA", since="10.15"),
    *_names("OnnxParserFlag", "ADJUST_FOR_DLA", since="10.16"),
    *_names("PreviewFeature", "PROFILE_SHARING_0806", removed="11.0"),
    *_names("PreviewFeature", "ALIASED_PLUGIN_IO_10_03", since="10.3"),
    *_names("PreviewFeature", "RUNTIME_ACTIVATION_RESIZE_10_10", since="10.10"),
    *_names("PreviewFeature", "MULTIDEVICE_RUNTIME_10_16", since="10.16", removed="11.0"),
    *_names("ProfilingVerbosity", "DETAILED"),
    *_names("Runtime", "engine_host_code_allowed"),
    *_names("TacticSource", "EDGE_MASK_CONVOLUTIONS JIT_CONVOLUTIONS"),
    *_names("TacticSource", "CUBLAS CUBLAS_LT CUDNN", removed="11.0"),
    *_names("TensorIOMode", "INPUT"),
    *_names("TilingOptimizationLevel", "FAST FULL MODERATE NONE", since="10.8"),
    *_names("TimingCacheValue", "tacticHash timingMSec", since="10.8"),
    _call("init_libnvinfer_plugins", "logger", "namespace"),
    _call("Builder.build_serialized_network", "network", "config"),
    _call("Builder.create_builder_config"),
    _call("Builder.create_network", "flags="),
    _call("Builder.create_optimization_profile"),
    _call("Builder.get_plugin_registry"),
    _call("IPluginRegistry.load_library", "plugin_path"),
    _call("INetworkDefinition.get_input", "index"),
    _call("IOptimizationProfile.set_shape", "input", "min", "opt", "max"),
    _call("OnnxParser.clear_flag", "flag"),
    _call("OnnxParser.get_error", "index"),
    _call("OnnxParser.parse", "model", "path="),
    _call("OnnxParser.parse_from_file", "model"),
    _call("OnnxParser.set_flag", "flag"),
    _call("ParserError.desc"),
    _call("ParserError.node_name"),
    _call("ParserError.node_operator"),
    _call("IBuilderConfig.add_optimization_profile", "profile"),
    _call("IBuilderConfig.clear_flag", "flag"),
    _call("IBuilderConfig.create_timing_cache", "serialized_timing_cache"),
    _call("IBuilderConfig.get_tactic_sources"),
    _call("IBuilderConfig.set_flag", "flag"),
    _call("IBuilderConfig.set_memory_pool_limit", "pool", "pool_size"),
    _call("IBuilderConfig.set_preview_feature", "feature", "enable"),
    _call("IBuilderConfig.set_tactic_sources", "tactic_sources"),
    _call("IBuilderConfig.set_timing_cache", "cache", "ignore_mismatch"),
    _call("ITimingCache.combine", "input_cache", "ignore_mismatch"),
    _call("ITimingCache.query", "key", since="10.8"),
    _call("ITimingCache.queryKeys", since="10.8"),
    _call("ITimingCache.serialize"),
    _call("ITimingCache.update", "key", "value", since="10.8"),
    _call("TimingCacheKey.parse", "text", since="10.8"),
    _call("Logger.log", "severity", "msg"),
    _call("get_plugin_registry"),
    _call("IPluginRegistry.register_creator", "creator", "plugin_namespace="),
    _call("Runtime.deserialize_cuda_engine", "serialized_engine"),
    _call("Runtime.get_plugin_registry"),
    _call("ICudaEngine.create_engine_inspector"),
    _call("ICudaEngine.create_execution_context", "strategy="),
    _call("ICudaEngine.get_tensor_dtype", "name"),
    _call("ICudaEngine.get_tensor_mode", "name"),
    _call("ICudaEngine.get_tensor_name", "index"),
    _call("ICudaEngine.get_tensor_profile_shape", "name", "profile_index"),
    _call("EngineInspector.get_engine_information", "format"),
    _call("IExecutionContext.execute_async_v3", "stream_handle"),
    _call("IExecutionContext.get_max_output_size", "name"),
    _call("IExecutionContext.infer_shapes"),
    _call("IExecutionContext.set_input_shape", "name", "shape"),
    _call("IExecutionContext.set_optimization_profile_async", "profile_index", "stream_handle"),
    _call("IExecutionContext.set_tensor_address", "name", "memory"),
)
"""Those that were removed are never used here: they are for errors that say what replaces them."""

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
    found = (c.name for c in CAPABILITIES if c.name.startswith(prefix) and c.in_version(version))
    return tuple(sorted(name.removeprefix(prefix) for name in found))
