"""What quick plugins are made of; `tensorrt.plugin`, which is NVIDIA's own, builds on these."""

from __future__ import annotations

from tensorrt.enums import PluginArgDataType, PluginArgType, QuickPluginCreationRequest
from tensorrt.plugin_types import PluginFieldCollection, _Interface
from tensorrt.release import Native

LAUNCH_NAMES = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_mem")


class IPluginV3QuickCore(_Interface):
    plugin_name = ""
    plugin_version = ""
    plugin_namespace = ""


class IPluginV3QuickBuild(_Interface):
    """Its methods are looked up by name, and have no counterpart in the bindings' class."""


class IPluginV3QuickAOTBuild(IPluginV3QuickBuild):
    pass


class IPluginV3QuickRuntime(_Interface):
    pass


class IPluginCreatorV3Quick(_Interface):
    name = ""
    plugin_version = ""
    plugin_namespace = ""
    field_names = None

    def create_plugin(
        self,
        name: str,
        namespace: str,
        field_collection: PluginFieldCollection,
        phase: object,
        quickPluginType: QuickPluginCreationRequest,
    ) -> object:
        raise NotImplementedError


class ISymExpr(_Interface):
    type = PluginArgType.INT
    dtype = PluginArgDataType.INT32
    expr = None


class ISymExprs(Native):
    nbSymExprs = 0

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ISymExprs: No constructor defined!")

    def __setitem__(self, index: int, item: ISymExpr) -> None:
        self._items[index] = item


class KernelLaunchParams(Native):
    grid_x = grid_y = grid_z = block_x = block_y = block_z = shared_mem = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.KernelLaunchParams: No constructor defined!")


def empty_launch() -> tuple[KernelLaunchParams, ISymExprs]:
    arguments = object.__new__(ISymExprs)
    arguments._items = {}
    return object.__new__(KernelLaunchParams), arguments
