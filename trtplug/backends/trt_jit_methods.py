"""What TensorRT calls on a just-in-time plugin, without the classes of TensorRT's to inherit from.

Names and order of parameters are those of `IPluginV3` and its three capabilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.backends.trt_jit_kernels import JitKernels, Launcher
from trtplug.backends.trt_plugin_sites import (
    NAMESPACE,
    PLUGIN_VERSION,
    TYPE_NAMES,
    describe_site,
    tactics_by_formats,
)
from trtplug.tactics.symbolic import check_range, output_on

if TYPE_CHECKING:
    from collections.abc import Sequence

SITE_FIELD = "site"
KERNEL_FIELD = "kernel_"


class JitMethods:
    """All capabilities of one layer; TensorRT's interfaces come after it among the bases."""

    def __init__(self, trt: Any, name: str, kernels: JitKernels, launcher: Launcher) -> None:
        for base in type(self).__bases__[1:]:
            base.__init__(self)  # type: ignore[misc]
        self.trt, self.kernels, self.launcher = trt, kernels, launcher
        self.combinations = tactics_by_formats(kernels.site)
        self.tactic = kernels.site.tactics[0].number
        self.offered: list[int] = []
        self.sizes: tuple[int, ...] = ()
        self.kept: list[Any] = []
        self.plugin_name, self.plugin_namespace = name, NAMESPACE
        self.plugin_version, self.num_outputs = PLUGIN_VERSION, 1
        self.timing_cache_id = kernels.site.digest
        self.metadata_string = describe_site(kernels.site)

    def get_capability_interface(self, type: Any) -> Any:  # noqa: ARG002 - TensorRT's name
        """This object has all three."""
        return self

    def clone(self) -> JitMethods:
        """A plugin of its own with the same state; what the bindings keep is set anew."""
        other = type(self)(self.trt, self.plugin_name, self.kernels, self.launcher)
        other.tactic, other.offered, other.sizes = self.tactic, self.offered, self.sizes
        return other

    def get_output_data_types(self, input_types: Any) -> list[Any]:  # noqa: ARG002 - ours is fixed
        """That of y."""
        return [getattr(self.trt.DataType, TYPE_NAMES[self.kernels.site.problem.dtype])]

    def get_output_shapes(
        self,
        inputs: Any,
        shape_inputs: Any,  # noqa: ARG002
        expr_builder: Any,
    ) -> list[Any]:
        """That of y, as expressions."""
        x = [Dimension(self.trt, expr_builder, d) for d in inputs[0]]
        made = output_on(self.kernels.site.problem, x)
        parts = [d.expr if isinstance(d, Dimension) else expr_builder.constant(d) for d in made]
        return [self.trt.DimsExprs(parts)]

    def supports_format_combination(
        self,
        pos: int,
        in_out: Any,
        num_inputs: int,  # noqa: ARG002
    ) -> bool:
        """Whether a tactic takes these types and formats, as far as they are known."""
        given = [_named(d.desc) for d in in_out[: pos + 1]]
        return any(given == _names(c)[: pos + 1] for c in self.combinations)

    def configure_plugin(self, inp: Any, out: Any) -> None:
        """Holds the sizes against those that kernels were made for, and notes the formats."""
        x = inp[0]
        check_range(self.kernels.site.problem, tuple(x.min), tuple(x.max))
        given = [_named(d.desc) for d in (*inp, *out)]
        self.offered = next(n for c, n in self.combinations.items() if _names(c) == given)

    def get_valid_tactics(self) -> list[int]:
        """Those for the formats that were configured last."""
        return list(self.offered)

    def get_workspace_size(self, inp: Any, out: Any) -> int:  # noqa: ARG002
        """None of our kernels needs any."""
        return 0

    def set_tactic(self, tactic: int) -> None:
        """Which kernel is to run."""
        self.tactic = tactic

    def on_shape_change(self, inp: Any, out: Any) -> None:  # noqa: ARG002
        """Sizes of what is to run."""
        self.sizes = tuple(int(n) for n in inp[0].dims)

    def attach_to_context(self, resource_context: Any) -> JitMethods:  # noqa: ARG002
        """A plugin of the context's own."""
        return self.clone()

    def get_fields_to_serialize(self) -> Any:
        """All that the plugin needs where the engine runs."""
        # TensorRT keeps addresses of names and bytes: they must live as long as the plugin.
        site, kernels = self.kernels.to_fields()
        texts = {SITE_FIELD: site} | {f"{KERNEL_FIELD}{i}": t for i, t in enumerate(kernels)}
        self.kept = [(name, text.encode()) for name, text in texts.items()]
        kind = self.trt.PluginFieldType.CHAR
        fields = [self.trt.PluginField(name, data, kind) for name, data in self.kept]
        collection = self.trt.PluginFieldCollection(fields)
        self.kept += [fields, collection]
        return collection

    def enqueue(
        self,
        input_desc: Any,  # noqa: ARG002 - sizes are known since `on_shape_change`
        output_desc: Any,  # noqa: ARG002
        inputs: Sequence[int],
        outputs: Sequence[int],
        workspace: int,  # noqa: ARG002
        stream: int,
    ) -> None:
        """Launches the kernel."""
        self.kernels.launch(self.launcher, self.tactic, self.sizes, inputs, outputs, stream)


def read_fields(fields: Any) -> JitKernels:
    """The inverse of `get_fields_to_serialize`."""
    texts = {f.name: bytes(f.data).decode() for f in fields}
    site = texts.pop(SITE_FIELD)
    return JitKernels.from_fields(site, [texts[f"{KERNEL_FIELD}{i}"] for i in range(len(texts))])


def _named(desc: Any) -> tuple[str, str]:
    """Type and format of a tensor, by name."""
    return desc.type.name, desc.format.name


def _names(formats: Sequence[Any]) -> list[tuple[str, str]]:
    return [(TYPE_NAMES[f.dtype], f.layout) for f in formats]


class Dimension:
    """A size that TensorRT knows as an expression, with the operations that shapes are made of."""

    def __init__(self, trt: Any, builder: Any, expr: Any) -> None:
        self.trt, self._builder, self.expr = trt, builder, expr

    def _with(self, operation: str, number: int) -> Dimension:
        which = getattr(self.trt.DimensionOperation, operation)
        made = self._builder.operation(which, self.expr, self._builder.constant(number))
        return Dimension(self.trt, self._builder, made)

    def __add__(self, number: int) -> Dimension:
        return self._with("SUM", number)

    def __floordiv__(self, number: int) -> Dimension:
        return self._with("FLOOR_DIV", number)
