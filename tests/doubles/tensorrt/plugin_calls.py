"""How a builder and a runtime call an IPluginV3, in the documented order.

Sources: NvInferRuntime.h (IPluginV3One*) and the developer guide on plugins. At parse: create, ask
the core and build interfaces, types, shapes. At build: formats position by position; for each
combination that is taken `configure_plugin`, then `get_valid_tactics`; with more than one candidate
in all, each is timed: `set_tactic` before `enqueue`. Last, the fields to serialize. At run: create
from those fields, `attach_to_context`, `set_tactic`, `on_shape_change`, `enqueue`.
"""

from __future__ import annotations

import hashlib
import itertools

from tensorrt.enums import DataType, PluginCapabilityType, TensorFormat, TensorRTPhase
from tensorrt.plugin_types import (
    DimsExprs,
    DynamicPluginTensorDesc,
    IExprBuilder,
    PluginField,
    PluginFieldCollection,
    PluginTensorDesc,
    dimension,
)
from tensorrt.plugins import get_plugin_registry
from tensorrt.release import gpu_name

FORMATS = (TensorFormat.LINEAR, TensorFormat.HWC8, TensorFormat.CHW32)


class PluginFault(Exception):
    """What a plugin did that TensorRT does not allow."""


class PluginLayer:
    """A plugin in a network: where it came from, and what is known of its tensors."""

    def __init__(self, node: object, plugin: object, types: list[DataType]) -> None:
        self.name = node.name or node.output[0]
        self.node = node
        self.plugin = plugin
        self.core = plugin.get_capability_interface(PluginCapabilityType.CORE)
        self.build = plugin.get_capability_interface(PluginCapabilityType.BUILD)
        self.types = types
        self.kernel, self.tactic, self.fields = "", 0, []


def create(node: object, attributes: dict[str, object]) -> object | None:
    """A plugin for an ONNX node, or None where no creator has its name, version and namespace."""
    version = str(attributes.pop("plugin_version", "1"))
    namespace = str(attributes.pop("plugin_namespace", ""))
    creator = get_plugin_registry().get_creator(node.op_type, version, namespace)
    if creator is None:
        return None
    fields = PluginFieldCollection(PluginField(k, v) for k, v in attributes.items())
    return creator.create_plugin(node.name, fields, TensorRTPhase.BUILD)


def add(node: object, plugin: object, dims: list[list[int]], types: list[DataType]) -> PluginLayer:
    """As `INetworkDefinition.add_plugin_v3`: outputs get their types and shapes."""
    layer = PluginLayer(node, plugin, types)
    count = layer.build.num_outputs
    out_types = list(layer.build.get_output_data_types(types))
    inputs = [DimsExprs(dimension(None if n < 0 else n) for n in d) for d in dims]
    shapes = layer.build.get_output_shapes(inputs, [], IExprBuilder())
    if not len(shapes) == len(out_types) == count == len(node.output):
        raise PluginFault(f"{layer.name}: {count} outputs, {len(shapes)} shapes")
    layer.types = types + out_types
    layer.dims = [list(d) for d in dims] + [
        [-1 if not e.is_constant() else e.get_constant_value() for e in s] for s in shapes
    ]
    return layer


def choose(layer: PluginLayer, cache: dict[str, tuple[int, float]] | None) -> None:
    """Formats and tactic; times candidates where there are several, or finds them in the cache."""
    combinations = [c for c in _combinations(layer) if _supported(layer, c)]
    if not combinations:
        raise PluginFault(f"{layer.name}: no format combination is supported")
    candidates = []
    for combination in combinations[: layer.build.format_combination_limit]:
        described = _dynamic(layer, combination)
        layer.build.configure_plugin(*_split(layer, described))
        tactics = list(layer.build.get_valid_tactics()) or [0]
        if len(set(tactics)) != len(tactics) or any(t < 0 for t in tactics):
            raise PluginFault(f"{layer.name}: tactics are positive and each is given once")
        candidates += [(combination, tactic) for tactic in tactics]
    best = _best(layer, candidates, cache)
    combination, layer.tactic = best
    layer.build.configure_plugin(*_split(layer, _dynamic(layer, combination)))
    runtime = layer.plugin.get_capability_interface(PluginCapabilityType.RUNTIME)
    runtime.set_tactic(layer.tactic)
    layer.formats = combination
    layer.fields = [(f.name, f.data) for f in runtime.get_fields_to_serialize()]


def _best(layer: PluginLayer, candidates: list, cache: dict | None) -> tuple:
    # A single candidate may not be timed at all.
    if len(candidates) == 1:
        return candidates[0]
    identity = layer.build.timing_cache_id
    key = None
    if cache is not None and identity is not None:
        told = repr((layer.dims, candidates, str(identity)))
        key = "0x" + hashlib.sha256(told.encode()).hexdigest()[:32]
        if key in cache:
            return candidates[cache[key][0] % len(candidates)]
    costs = [_time(layer, *candidate) for candidate in candidates]
    winner = costs.index(min(costs))
    if key is not None:
        cache[key] = (winner, min(costs))
    return candidates[winner]


def _time(layer: PluginLayer, combination: tuple, tactic: int) -> float:
    """Runs one candidate; its time follows from name and GPU, as no kernel runs here."""
    described = _dynamic(layer, combination)
    clone = layer.plugin.clone()
    build = clone.get_capability_interface(PluginCapabilityType.BUILD)
    build.configure_plugin(*_split(layer, described))
    build.get_workspace_size(*_split(layer, described))
    runtime = clone.get_capability_interface(PluginCapabilityType.RUNTIME)
    runtime.set_tactic(tactic)
    static = [d.desc for d in described]
    inputs, outputs = _split(layer, static)
    runtime.on_shape_change(inputs, outputs)
    runtime.enqueue(inputs, outputs, [1] * len(inputs), [1] * len(outputs), 0, 1)
    told = repr((layer.name, combination, tactic, gpu_name()))
    return int(hashlib.sha256(told.encode()).hexdigest()[:6], 16) / 2**24


def _combinations(layer: PluginLayer) -> itertools.product:
    return itertools.product(FORMATS, repeat=len(layer.types))


def _supported(layer: PluginLayer, combination: tuple) -> bool:
    """Asked position by position; what stands behind a position is not looked at yet."""
    described = _dynamic(layer, combination)
    count = len(layer.node.input)
    return all(
        layer.build.supports_format_combination(pos, described[: pos + 1], count)
        for pos in range(len(described))
    )


def _dynamic(layer: PluginLayer, combination: tuple) -> list[DynamicPluginTensorDesc]:
    made = []
    for dims, dtype, layout in zip(layer.dims, layer.types, combination, strict=True):
        outer, outer.desc = DynamicPluginTensorDesc(), PluginTensorDesc()
        outer.desc.dims, outer.desc.type, outer.desc.format = dims, dtype, layout
        outer.min = outer.opt = outer.max = [max(1, n) for n in dims]
        made.append(outer)
    return made


def _split(layer: PluginLayer, described: list) -> tuple[list, list]:
    count = len(layer.node.input)
    return described[:count], described[count:]


def revive(saved: dict) -> object | None:
    """The runtime's plugin, from what the engine holds; None where it has no creator here."""
    name, version, namespace = saved["creator"]
    creator = get_plugin_registry().get_creator(name, version, namespace)
    if creator is None:
        return None
    fields = PluginFieldCollection(PluginField(k, v) for k, v in saved["fields"])
    return creator.create_plugin(saved["name"], fields, TensorRTPhase.RUNTIME)


def run(plugin: object, saved: dict) -> object:
    """What a context does with it, up to the first run."""
    attached = plugin.get_capability_interface(PluginCapabilityType.RUNTIME).attach_to_context(None)
    runtime = attached.get_capability_interface(PluginCapabilityType.RUNTIME)
    runtime.set_tactic(saved["tactic"])
    described = []
    for dims in saved["dims"]:
        desc = PluginTensorDesc()
        desc.dims = dims
        described.append(desc)
    inputs, outputs = described[: saved["inputs"]], described[saved["inputs"] :]
    runtime.on_shape_change(inputs, outputs)
    runtime.enqueue(inputs, outputs, [1] * len(inputs), [1] * len(outputs), 0, 1)
    return attached


def save(layer: PluginLayer) -> dict:
    """What the engine keeps of a plugin."""
    core = layer.core
    return {
        "name": layer.name,
        "creator": [core.plugin_name, core.plugin_version, core.plugin_namespace],
        "fields": [[k, v if isinstance(v, int | float | str) else str(v)] for k, v in layer.fields],
        "tactic": layer.tactic,
        "dims": layer.dims,
        "inputs": len(layer.node.input),
    }
