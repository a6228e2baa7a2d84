"""A double of TensorRT's Python bindings: as much of their behaviour as is documented, and no more.

It builds nothing that runs. What it imitates: which names a release has, the order of calls, the
rules of timing caches, the tables in the VERBOSE log, the inspector's two layouts, and how each
call says that something is wrong. The release and what is to go wrong stand beside the package, see
`release`. A test holds its public names, values and parameters against the real bindings.
"""

from tensorrt.builder import Builder, IOptimizationProfile
from tensorrt.config import IBuilderConfig, IProgressMonitor
from tensorrt.enums import *  # noqa: F403 - the names that this release has
from tensorrt.host import IHostMemory
from tensorrt.logger import ILogger, Logger
from tensorrt.network import IConstantLayer, ILayer, INetworkDefinition, IPluginV3Layer, ITensor
from tensorrt.parser import OnnxParser, ParserError
from tensorrt.plugin_types import (
    Dims,
    DimsExprs,
    DynamicPluginTensorDesc,
    IDimensionExpr,
    IExprBuilder,
    IPluginCreatorV3One,
    IPluginV3,
    IPluginV3OneBuild,
    IPluginV3OneCore,
    IPluginV3OneRuntime,
    PluginField,
    PluginFieldCollection,
    PluginTensorDesc,
)
from tensorrt.plugins import IPluginRegistry, get_plugin_registry, init_libnvinfer_plugins
from tensorrt.quick_types import (
    IPluginCreatorV3Quick,
    IPluginV3QuickAOTBuild,
    IPluginV3QuickBuild,
    IPluginV3QuickCore,
    IPluginV3QuickRuntime,
    ISymExpr,
    ISymExprs,
    KernelLaunchParams,
)
from tensorrt.release import HOME
from tensorrt.release import VERSION as __version__
from tensorrt.runtime import EngineInspector, ICudaEngine, IExecutionContext, Runtime
from tensorrt.timing_cache import ITimingCache, TimingCacheKey, TimingCacheValue

# Where a place has NVIDIA's own `tensorrt.plugin`, it lies here.
__path__.append(str(HOME / "tensorrt_bindings"))  # noqa: F405 - every package has it

__all__ = [
    "Builder",
    "Dims",
    "DimsExprs",
    "DynamicPluginTensorDesc",
    "EngineInspector",
    "IBuilderConfig",
    "IConstantLayer",
    "ICudaEngine",
    "IDimensionExpr",
    "IExecutionContext",
    "IExprBuilder",
    "IHostMemory",
    "ILayer",
    "ILogger",
    "INetworkDefinition",
    "IOptimizationProfile",
    "IPluginCreatorV3One",
    "IPluginCreatorV3Quick",
    "IPluginRegistry",
    "IPluginV3",
    "IPluginV3Layer",
    "IPluginV3OneBuild",
    "IPluginV3OneCore",
    "IPluginV3OneRuntime",
    "IPluginV3QuickAOTBuild",
    "IPluginV3QuickBuild",
    "IPluginV3QuickCore",
    "IPluginV3QuickRuntime",
    "IProgressMonitor",
    "ISymExpr",
    "ISymExprs",
    "ITensor",
    "ITimingCache",
    "KernelLaunchParams",
    "Logger",
    "OnnxParser",
    "ParserError",
    "PluginField",
    "PluginFieldCollection",
    "PluginTensorDesc",
    "Runtime",
    "TimingCacheKey",
    "TimingCacheValue",
    "__version__",
    "get_plugin_registry",
    "init_libnvinfer_plugins",
]
