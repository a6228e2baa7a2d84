"""Enums, with the values that this release has; numbers change between major versions."""

from __future__ import annotations

from enum import IntEnum

from tensorrt.release import MAJOR, in_release

_NEW = MAJOR >= 11


def _enum(name: str, *rows: tuple) -> type[IntEnum]:
    """Rows of name, value, and optionally since and removed."""
    return IntEnum(name, {n: v for n, v, *when in rows if not when or in_release(*when)})


def _shifted(ten: int) -> int:
    """A builder flag's number: release 11 dropped WEIGHTLESS, and all after it moved up by one."""
    return ten - 1 if _NEW else ten


BuilderFlag = _enum(
    "BuilderFlag",
    ("FP16", 0, "10.0", "11.0"),
    ("INT8", 1, "10.0", "11.0"),
    ("DEBUG", 2),
    ("REFIT", 4),
    ("DISABLE_TIMING_CACHE", 5),
    ("TF32", 6),
    ("SPARSE_WEIGHTS", 7),
    ("DIRECT_IO", 11),
    ("VERSION_COMPATIBLE", _shifted(13)),
    ("EXCLUDE_LEAN_RUNTIME", _shifted(14)),
    ("FP8", 15, "10.0", "11.0"),
    ("ERROR_ON_TIMING_CACHE_MISS", _shifted(16)),
    ("BF16", 17, "10.0", "11.0"),
    ("DISABLE_COMPILATION_CACHE", _shifted(18)),
    ("STRIP_PLAN", _shifted(19)),
    ("REFIT_IDENTICAL", _shifted(20)),
    ("WEIGHT_STREAMING", _shifted(21)),
    ("STRICT_NANS", _shifted(24)),
    ("MONITOR_MEMORY", _shifted(25)),
    ("EDITABLE_TIMING_CACHE", _shifted(27)),
    ("DISTRIBUTIVE_INDEPENDENCE", _shifted(28), "10.12"),
)
TacticSource = _enum(
    "TacticSource",
    ("CUBLAS", 0, "10.0", "11.0"),
    ("CUBLAS_LT", 1, "10.0", "11.0"),
    ("CUDNN", 2, "10.0", "11.0"),
    ("EDGE_MASK_CONVOLUTIONS", 0 if _NEW else 3),
    ("JIT_CONVOLUTIONS", 1 if _NEW else 4),
)
PreviewFeature = _enum(
    "PreviewFeature",
    ("PROFILE_SHARING_0806", 0, "10.0", "11.0"),
    ("ALIASED_PLUGIN_IO_10_03", 0 if _NEW else 1),
    ("RUNTIME_ACTIVATION_RESIZE_10_10", 1 if _NEW else 2, "10.10"),
)
NetworkDefinitionCreationFlag = _enum(
    "NetworkDefinitionCreationFlag",
    ("EXPLICIT_BATCH", 0, "10.0", "11.0"),
    ("STRONGLY_TYPED", 0 if _NEW else 1),
    ("PREFER_JIT_PYTHON_PLUGINS", 1 if _NEW else 2),
    ("PREFER_AOT_PYTHON_PLUGINS", 2 if _NEW else 3),
)
OnnxParserFlag = _enum(
    "OnnxParserFlag",
    ("NATIVE_INSTANCENORM", 0),
    ("ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA", 1, "10.11"),
    ("REPORT_CAPABILITY_DLA", 2, "10.15"),
    ("ENABLE_PLUGIN_OVERRIDE", 3, "10.15"),
    ("ADJUST_FOR_DLA", 4, "10.16"),
)
MemoryPoolType = _enum("MemoryPoolType", ("WORKSPACE", 0), ("TACTIC_SHARED_MEMORY", 5))
HardwareCompatibilityLevel = _enum(
    "HardwareCompatibilityLevel",
    ("NONE", 0),
    ("AMPERE_PLUS", 1),
    ("SAME_COMPUTE_CAPABILITY", 2),
)
TilingOptimizationLevel = _enum(
    "TilingOptimizationLevel", ("NONE", 0), ("FAST", 1), ("MODERATE", 2), ("FULL", 3)
)
ProfilingVerbosity = _enum(
    "ProfilingVerbosity", ("LAYER_NAMES_ONLY", 0), ("NONE", 1), ("DETAILED", 2)
)
LayerInformationFormat = _enum("LayerInformationFormat", ("ONELINE", 0), ("JSON", 1))
TensorIOMode = _enum("TensorIOMode", ("NONE", 0), ("INPUT", 1), ("OUTPUT", 2))
TensorLocation = _enum("TensorLocation", ("DEVICE", 0), ("HOST", 1))
TensorFormat = _enum(
    "TensorFormat",
    *(("LINEAR", 0), ("CHW2", 1), ("HWC8", 2), ("CHW4", 3), ("CHW16", 4), ("CHW32", 5)),
    *(("HWC", 8), ("HWC16", 11)),
)
PluginFieldType = _enum(
    "PluginFieldType",
    *(("FLOAT16", 0), ("FLOAT32", 1), ("FLOAT64", 2), ("INT8", 3), ("INT16", 4), ("INT32", 5)),
    *(("CHAR", 6), ("DIMS", 7), ("UNKNOWN", 8), ("BF16", 9), ("INT64", 10)),
)
PluginCapabilityType = _enum("PluginCapabilityType", ("CORE", 0), ("BUILD", 1), ("RUNTIME", 2))
TensorRTPhase = _enum("TensorRTPhase", ("BUILD", 0), ("RUNTIME", 1))
DimensionOperation = _enum(
    "DimensionOperation",
    *(("SUM", 0), ("PROD", 1), ("MAX", 2), ("MIN", 3), ("SUB", 4)),
    *(("EQUAL", 5), ("LESS", 6), ("FLOOR_DIV", 7), ("CEIL_DIV", 8)),
)
QuickPluginCreationRequest = _enum(
    "QuickPluginCreationRequest",
    *(("UNKNOWN", 0), ("PREFER_JIT", 1), ("PREFER_AOT", 2), ("STRICT_JIT", 3), ("STRICT_AOT", 4)),
)
PluginArgType = _enum("PluginArgType", ("INT", 0))
PluginArgDataType = _enum("PluginArgDataType", ("INT8", 0), ("INT16", 1), ("INT32", 2))

_ITEM_BYTES = {"FLOAT": 4, "HALF": 2, "INT8": 1, "INT32": 4, "BOOL": 1, "UINT8": 1, "BF16": 2}


class DataType(IntEnum):
    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    BOOL = 4
    UINT8 = 5
    FP8 = 6
    BF16 = 7
    INT64 = 8

    @property
    def itemsize(self) -> int:
        return _ITEM_BYTES.get(self.name, 8 if self.name == "INT64" else 1)


__all__ = [
    "BuilderFlag",
    "DataType",
    "DimensionOperation",
    "HardwareCompatibilityLevel",
    "LayerInformationFormat",
    "MemoryPoolType",
    "NetworkDefinitionCreationFlag",
    "OnnxParserFlag",
    "PluginArgDataType",
    "PluginArgType",
    "PluginCapabilityType",
    "PluginFieldType",
    "PreviewFeature",
    "ProfilingVerbosity",
    "QuickPluginCreationRequest",
    "TacticSource",
    "TensorFormat",
    "TensorIOMode",
    "TensorLocation",
    "TensorRTPhase",
    "TilingOptimizationLevel",
]
