"""How a parser, a builder and a runtime call plugins, of either kind.

What differs between kinds is in `plugin_v3` (IPluginV3 with its three capabilities) and in
`plugin_quick` (quick plugins, ahead of time).
"""

from __future__ import annotations

import base64
import hashlib

from tensorrt.enums import PluginFieldType, QuickPluginCreationRequest, TensorRTPhase
from tensorrt.plugin_quick import QuickLayer
from tensorrt.plugin_types import PluginField, PluginFieldCollection
from tensorrt.plugin_v3 import PluginLayer
from tensorrt.plugins import get_plugin_registry
from tensorrt.quick_types import IPluginCreatorV3Quick, IPluginV3QuickCore

Candidate = tuple[tuple, int]
"""Formats of all inputs and outputs, and a tactic."""


class PluginFault(Exception):
    """What a plugin did that TensorRT does not allow."""


def create(node: object, attributes: dict[str, object]) -> object | None:
    """A plugin for an ONNX node, or None where no creator has its name, version and namespace.

    As the parser does it: only what the creator names becomes a field, integers as int32.
    """
    version = str(attributes.pop("plugin_version", "1"))
    namespace = str(attributes.pop("plugin_namespace", ""))
    creator = get_plugin_registry().get_creator(node.op_type, version, namespace)
    if creator is None:
        return None
    wanted = [f.name for f in creator.field_names or ()]
    fields = PluginFieldCollection(_field(n, attributes[n]) for n in wanted if n in attributes)
    if isinstance(creator, IPluginCreatorV3Quick):
        kinds = QuickPluginCreationRequest
        request = kinds.STRICT_AOT if attributes.get("aot") else kinds.UNKNOWN
        return creator.create_plugin(node.op_type, namespace, fields, TensorRTPhase.BUILD, request)
    return creator.create_plugin(node.name, fields, TensorRTPhase.BUILD)


def _field(name: str, value: object) -> PluginField:
    import numpy as np

    if isinstance(value, str):
        return PluginField(name, value.encode(), PluginFieldType.CHAR)
    if isinstance(value, int):
        return PluginField(name, np.array([value], np.int32), PluginFieldType.INT32)
    return PluginField(name, np.array(value, np.float32).reshape(-1), PluginFieldType.FLOAT32)


def add(node: object, plugin: object, dims: list, types: list) -> PluginLayer | QuickLayer:
    """As `INetworkDefinition.add_plugin_v3`: outputs get their types and shapes."""
    kind = QuickLayer if isinstance(plugin, IPluginV3QuickCore) else PluginLayer
    layer = kind(node, plugin)
    layer.types = types + layer.output_types(types, [len(d) for d in dims])
    layer.dims = [list(d) for d in dims] + layer.output_dims(dims)
    if len(layer.types) != len(layer.dims) or len(layer.dims) != len(dims) + len(node.output):
        raise PluginFault(f"{layer.name}: {len(layer.dims) - len(dims)} outputs")
    return layer


def candidates(layer: PluginLayer | QuickLayer) -> list[Candidate]:
    """Each combination of formats that is taken, with each of its tactics."""
    found = []
    combinations = layer.combinations()
    if not combinations:
        raise PluginFault(f"{layer.name}: no format combination is supported")
    for combination in combinations:
        tactics = layer.tactics(combination) or [0]
        if len(set(tactics)) != len(tactics) or any(t < 0 for t in tactics):
            raise PluginFault(f"{layer.name}: tactics are positive and each is given once")
        found += [(combination, tactic) for tactic in tactics]
    return found


def cache_key(layer: PluginLayer | QuickLayer, combinations: list[Candidate]) -> str | None:
    """Shapes and formats, then the plugin's own identity; None where it has none: no caching."""
    if layer.identity is None:
        return None
    formats = sorted({tuple(map(int, c)) for c, _ in combinations})
    ranges = [(layer.dims, layer.profile)]
    told = repr((ranges, [int(t) for t in layer.types], formats, str(layer.identity)))
    return "0x" + hashlib.sha256(told.encode()).hexdigest()[:32]


def revive(saved: dict) -> object | None:
    """The runtime's plugin, from what the engine holds; None where it has no creator here.

    A quick plugin of the ahead-of-time form is a kernel and needs none.
    """
    if saved["ahead_of_time"]:
        return saved["kernel"]
    name, version, namespace = saved["creator"]
    creator = get_plugin_registry().get_creator(name, version, namespace)
    if creator is None:
        return None
    fields = PluginFieldCollection(
        PluginField(n, base64.b64decode(data), PluginFieldType(kind))
        for n, kind, data in saved["fields"]
    )
    return creator.create_plugin(saved["name"], fields, TensorRTPhase.RUNTIME)


def run(plugin: object, saved: dict) -> None:
    """What a context does with it, up to the first run; a kernel is launched without anyone."""
    if not saved["ahead_of_time"]:
        PluginLayer.run(plugin, saved)


def save(layer: PluginLayer | QuickLayer) -> dict:
    """What the engine keeps of a plugin."""
    core = layer.core
    kept = {
        "name": layer.name,
        "creator": [core.plugin_name, core.plugin_version, core.plugin_namespace],
        "tactic": layer.tactic,
        "dims": layer.dims,
        "formats": [f.name for f in layer.formats],
        "inputs": len(layer.node.input),
    }
    return kept | layer.saved()
