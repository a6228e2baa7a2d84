"""How a quick plugin of the ahead-of-time form is called.

The methods are those of `_TemplateAOTPlugin`, with what the bindings' C++ passes to each
(python/src/infer/pyPlugin.cpp). Their order is the double's assumption, made after IPluginV3's:
types, shapes; at build all combinations at once (asked twice, first for their number),
`configure_plugin` and `get_valid_tactics` for each (twice likewise), and for each candidate
`set_tactic`, `get_launch_params`, `get_kernel`. An engine keeps one kernel.
"""

from __future__ import annotations

from tensorrt.enums import DataType, PluginCapabilityType
from tensorrt.plugin_types import DimsExprs, DynamicPluginTensorDesc, IExprBuilder, dimension
from tensorrt.plugin_v3 import PluginLayer, cost
from tensorrt.quick_types import LAUNCH_NAMES, empty_launch


class QuickLayer(PluginLayer):
    """As `PluginLayer`."""

    @property
    def identity(self) -> str | None:
        return self.build.get_timing_cache_id()

    @property
    def metadata(self) -> str | None:
        told = getattr(self.build, "get_metadata_string", None)
        return told() if told is not None else None

    def output_types(self, types: list[DataType], ranks: list[int]) -> list[DataType]:
        made = list(self.build.get_output_data_types(types, ranks))
        return made if len(made) == self.build.get_num_outputs() else []

    def combinations(self) -> list[tuple]:
        count = len(self.types)
        described = self.described((0,) * count)
        for _ in range(2):
            offered = self.build.get_supported_format_combinations(described, len(self.node.input))
        assert len(offered) % count == 0
        begins = range(0, len(offered), count)
        wanted = [offered[b : b + count] for b in begins]
        # Strongly typed: combinations of other types are passed over.
        return [tuple(d.format for d in w) for w in wanted if [d.type for d in w] == self.types]

    def tactics(self, combination: tuple) -> list[int]:
        self.build.configure_plugin(*self.split(self.described(combination)))
        self.build.get_valid_tactics()
        return list(self.build.get_valid_tactics())

    def time(self, combination: tuple, tactic: int) -> float:
        self._kernel(self.plugin.clone(), combination, tactic)
        return cost(self.name, combination, tactic)

    def settle(self, combination: tuple, tactic: int) -> None:
        self.build.configure_plugin(*self.split(self.described(combination)))
        self.formats, self.tactic = combination, tactic
        self.chosen = self._kernel(self.plugin, combination, tactic)

    def _kernel(self, plugin: object, combination: tuple, tactic: int) -> dict:
        build = plugin.get_capability_interface(PluginCapabilityType.BUILD)
        build.set_tactic(tactic)
        described: list[DynamicPluginTensorDesc] = self.described(combination)
        inputs, outputs = self.split(described)
        shapes = [DimsExprs(dimension(None if n < 0 else n) for n in d.desc.dims) for d in inputs]
        parameters, arguments = empty_launch()
        build.get_launch_params(
            shapes, described, len(inputs), parameters, arguments, IExprBuilder()
        )
        kernel, code = build.get_kernel([d.desc for d in inputs], [d.desc for d in outputs])
        missing = [n for n in LAUNCH_NAMES if getattr(parameters, n) is None]
        assert not missing, missing
        assert len(arguments._items) == arguments.nbSymExprs
        return {"name": kernel, "code": code.decode(), "arguments": arguments.nbSymExprs}

    def saved(self) -> dict:
        return {"ahead_of_time": True, "fields": [], "kernel": self.chosen}
