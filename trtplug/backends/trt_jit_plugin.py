"""Our ops as Python plugins of TensorRT, just in time: for TensorRT without ahead-of-time plugins.

The same kernels, launched through the CUDA layer. An engine built so needs Python and this module
wherever it runs: call `register_jit_plugins` before the engine is loaded. Reports of such a build
say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.backends.trt_jit_kernels import JitKernels, Launcher
from trtplug.backends.trt_jit_methods import JitMethods, read_fields
from trtplug.backends.trt_plugin_sites import NAMESPACE, PLUGIN_VERSION, read_key
from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, LAYER_INPUTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.backends.cuda_layer.interface import CudaLayer
    from trtplug.backends.trt_plugin_sites import PluginSites


def register_jit_plugins(
    trt: Any,
    registry: Any,
    sites: PluginSites | None = None,
    open_layer: Callable[[], CudaLayer] | None = None,
) -> None:
    """Registers a creator for each type of node.

    Args:
        trt: the bindings.
        registry: where.
        sites: the kit to build with; None where engines are only run: they hold what they need.
        open_layer: how kernels are launched; by default through what is installed here.

    Raises:
        ValueError: the registry knows a name already.
    """
    from trtplug.backends.cuda_layer import find

    launcher = Launcher(open_layer or find.open_layer)
    plugin, creator = _plugin_class(trt), _creator_class(trt)

    def make(name: str, kernels: JitKernels) -> Any:
        return plugin(trt, name, kernels, launcher)

    for name in LAYER_INPUTS if sites is None else sites.layer_types():
        made = creator(trt, name, make, sites)
        if not registry.register_creator(made, NAMESPACE):
            raise ValueError(f"{NAMESPACE}::{name} is registered already")


def fields_can_be_read(trt: Any) -> bool:
    """Whether the bindings read a field of several elements.

    Those of 10.9 to 10.13 do not under NumPy 2, and so cannot read what such an engine holds.
    """
    probe = trt.PluginField("probe", b"ab", trt.PluginFieldType.CHAR)
    return bytes(probe.data) == b"ab"


class CreatorMethods:
    """Makes the plugin from a node's key, or from what an engine holds."""

    def __init__(
        self, trt: Any, name: str, make: Callable[[str, JitKernels], Any], sites: PluginSites | None
    ) -> None:
        for base in type(self).__bases__[1:]:
            base.__init__(self)  # type: ignore[misc]
        self.trt, self.make, self.sites = trt, make, sites
        self.name, self.plugin_version = name, PLUGIN_VERSION
        self.plugin_namespace = NAMESPACE
        kind, empty = trt.PluginFieldType.INT32, np.array([], np.int32)
        self.kept = [trt.PluginField(n, empty, kind) for n in KEY_ATTRIBUTES]
        self.field_names = trt.PluginFieldCollection(self.kept)

    def create_plugin(self, name: str, field_collection: Any, phase: Any) -> Any:  # noqa: ARG002
        """Called by TensorRT.

        Raises:
            ValueError: the kit has no such site, or there is none.
        """
        trt = self.trt
        if phase == trt.TensorRTPhase.RUNTIME:
            return self.make(self.name, read_fields(field_collection))
        if self.sites is None:
            raise ValueError(f"{self.name} can be built with a plugin kit only")
        return self.make(self.name, JitKernels.from_kit(self.sites, *read_key(field_collection)))


def _plugin_class(trt: Any) -> Any:
    """Made once TensorRT is loaded, since its interfaces are bases."""

    class JitPlugin(
        JitMethods,
        trt.IPluginV3,  # type: ignore[misc]
        trt.IPluginV3OneCore,  # type: ignore[misc]
        trt.IPluginV3OneBuild,  # type: ignore[misc]
        trt.IPluginV3OneRuntime,  # type: ignore[misc]
    ):
        pass

    return JitPlugin


def _creator_class(trt: Any) -> Any:
    class JitCreator(CreatorMethods, trt.IPluginCreatorV3One):  # type: ignore[misc]
        pass

    return JitCreator
