"""How an IPluginV3 is called, in the documented order.

Sources: NvInferRuntime.h (IPluginV3One*) and the developer guide on plugins. At parse: create, ask
the core and build interfaces, types, shapes. At build: formats position by position; for each
combination that is taken `configure_plugin`, then `get_valid_tactics`; with more than one candidate
in all, each is timed: `set_tactic` before `enqueue`. Last, the fields to serialize. At run: create
from those fields, `attach_to_context`, `set_tactic`, `on_shape_change`, `enqueue`.
"""

from __future__ import annotations

import base64
import hashlib
import itertools

from tensorrt.enums import DataType, PluginCapabilityType, TensorFormat
from tensorrt.plugin_types import (
    DimsExprs,
    DynamicPluginTensorDesc,
    IExprBuilder,
    PluginTensorDesc,
    dimension,
)
from tensorrt.release import gpu_name

FORMATS = (TensorFormat.LINEAR, TensorFormat.HWC8, TensorFormat.CHW32)


class PluginLayer:
    """A plugin in a network: where it came from, and what is known of its tensors."""

    def __init__(self, node: object, plugin: object) -> None:
        self.name = node.name or node.output[0]
        self.node, self.plugin = node, plugin
        self.core = plugin.get_capability_interface(PluginCapabilityType.CORE)
        self.build = plugin.get_capability_interface(PluginCapabilityType.BUILD)
        self.types, self.dims, self.tactic, self.formats, self.fields = [], [], 0, (), []
        self.profile = []
        """Min, opt and max of each tensor."""

    @property
    def identity(self) -> str | None:
        return self.build.timing_cache_id

    @property
    def metadata(self) -> str | None:
        return self.build.metadata_string

    def output_types(self, types: list[DataType], ranks: list[int]) -> list[DataType]:
        made = list(self.build.get_output_data_types(types))
        return made if len(made) == self.build.num_outputs else []

    def output_dims(self, dims: list[list[int]]) -> list[list[int]]:
        inputs = [DimsExprs(dimension(None if n < 0 else n) for n in d) for d in dims]
        shapes = self.build.get_output_shapes(inputs, [], IExprBuilder())
        return [[e.get_constant_value() if e.is_constant() else -1 for e in s] for s in shapes]

    def combinations(self) -> list[tuple]:
        found = itertools.product(FORMATS, repeat=len(self.types))
        taken = [c for c in found if self._supported(c)]
        return taken[: self.build.format_combination_limit]

    def _supported(self, combination: tuple) -> bool:
        """Asked position by position; what stands behind a position is not looked at yet."""
        described = self.described(combination)
        count = len(self.node.input)
        return all(
            self.build.supports_format_combination(pos, described[: pos + 1], count)
            for pos in range(len(described))
        )

    def tactics(self, combination: tuple) -> list[int]:
        self.build.configure_plugin(*self.split(self.described(combination)))
        return list(self.build.get_valid_tactics())

    def time(self, combination: tuple, tactic: int) -> float:
        """Runs one candidate; its time follows from name and GPU, as no kernel runs here."""
        described = self.described(combination)
        clone = self.plugin.clone()
        build = clone.get_capability_interface(PluginCapabilityType.BUILD)
        build.configure_plugin(*self.split(described))
        build.get_workspace_size(*self.split(described))
        runtime = clone.get_capability_interface(PluginCapabilityType.RUNTIME)
        runtime.set_tactic(tactic)
        _enqueue(runtime, *self.split([_at(d.desc, d.opt) for d in described]))
        return cost(self.name, combination, tactic)

    def settle(self, combination: tuple, tactic: int) -> None:
        self.build.configure_plugin(*self.split(self.described(combination)))
        runtime = self.plugin.get_capability_interface(PluginCapabilityType.RUNTIME)
        runtime.set_tactic(tactic)
        self.formats, self.tactic = combination, tactic
        self.fields = list(runtime.get_fields_to_serialize())

    def saved(self) -> dict:
        data = [base64.b64encode(f._data).decode() for f in self.fields]
        rows = [[f.name, int(f.type), d] for f, d in zip(self.fields, data, strict=True)]
        return {"ahead_of_time": False, "fields": rows}

    def described(self, combination: tuple) -> list[DynamicPluginTensorDesc]:
        made = []
        for place, (dims, dtype, layout) in enumerate(
            zip(self.dims, self.types, combination, strict=True)
        ):
            outer, outer.desc = DynamicPluginTensorDesc(), PluginTensorDesc()
            outer.desc.dims, outer.desc.type, outer.desc.format = list(dims), dtype, layout
            low = [max(1, n) for n in dims]
            ends = self.profile[place] if self.profile else (low, low, low)
            outer.min, outer.opt, outer.max = ends
            made.append(outer)
        return made

    def split(self, described: list) -> tuple[list, list]:
        count = len(self.node.input)
        return described[:count], described[count:]

    @staticmethod
    def run(plugin: object, saved: dict) -> None:
        runtime = plugin.get_capability_interface(PluginCapabilityType.RUNTIME)
        attached = runtime.attach_to_context(None)
        runtime = attached.get_capability_interface(PluginCapabilityType.RUNTIME)
        runtime.set_tactic(saved["tactic"])
        described = []
        for dims in saved["at"]:
            desc = PluginTensorDesc()
            desc.dims = dims
            described.append(desc)
        _enqueue(runtime, described[: saved["inputs"]], described[saved["inputs"] :])


def _enqueue(runtime: object, inputs: list, outputs: list) -> None:
    runtime.on_shape_change(inputs, outputs)
    runtime.enqueue(inputs, outputs, [4096] * len(inputs), [4096] * len(outputs), 0, 1)


def _at(desc: PluginTensorDesc, dims: list[int]) -> PluginTensorDesc:
    made = PluginTensorDesc()
    made.dims, made.type, made.format = list(dims), desc.type, desc.format
    return made


def cost(name: str, combination: tuple, tactic: int) -> float:
    """Milliseconds."""
    told = repr((name, tuple(map(int, combination)), tactic, gpu_name()))
    return round(0.004 + int(hashlib.sha256(told.encode()).hexdigest()[:6], 16) / 2**30, 7)
