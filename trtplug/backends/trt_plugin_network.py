"""A plugin's layer by TensorRT's network API: the same layer that its parser makes of a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.backends.trt_plugin_sites import NAMESPACE, PLUGIN_VERSION
from trtplug.backends.trt_quick_plugins import plugin_package
from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, site_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.trt_plugins import Form


def add_plugin_layer(
    trt: Any,
    network: Any,
    form: Form,
    layer_type: str,
    inputs: Sequence[Any],
    site: str,
    name: str,
) -> Any:
    """Adds the layer of a site; call `offer_plugins` before.

    Args:
        trt: the bindings.
        network: to add it to.
        form: what `offer_plugins` gave.
        layer_type: of `LAYER_INPUTS`, such as `CBRResidual`.
        inputs: TensorRT's tensors, in the order of `LAYER_INPUTS`.
        site: digest of the site in the kit.
        name: of the layer.

    Returns:
        The layer; its only output is y. None where TensorRT refuses it.
    """
    numbers = dict(zip(KEY_ATTRIBUTES, site_key(site), strict=True))
    if form == "ahead-of-time":
        define = getattr(getattr(plugin_package(trt).op, NAMESPACE), layer_type)
        plugin_layer = network.add_plugin(define(*inputs, **numbers), aot=True)
    else:
        registry = trt.get_plugin_registry()
        creator = registry.get_creator(layer_type, PLUGIN_VERSION, NAMESPACE)
        kind = trt.PluginFieldType.INT32
        # TensorRT keeps addresses of what fields are made of: it must live until they are read.
        values = [np.array([n], np.int32) for n in numbers.values()]
        fields = [trt.PluginField(n, v, kind) for n, v in zip(numbers, values, strict=True)]
        collection = trt.PluginFieldCollection(fields)
        plugin = creator.create_plugin(name, collection, trt.TensorRTPhase.BUILD)
        plugin_layer = network.add_plugin_v3(list(inputs), [], plugin)
    if plugin_layer is not None:
        plugin_layer.name = name
    return plugin_layer
