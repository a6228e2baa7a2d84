"""Symbolic sizes: which tensors are sure to have the same shape, whatever the model is fed.

ONNX shape inference loses the size of a dynamic axis at the first convolution. Here a size is a
number or a value that compares equal to another only where the two are equal for every input, so
that `x` and a padded 3x3 convolution of `x` are known to fit together with H and W unknown.

An axis of an input is a symbol of its own, never its name in the file: exporters give unrelated
axes one name. Knows only the operators between a residual's two ends; others give fresh symbols.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from trtplug.errors import NodeInvalidError
from trtplug.model.convolution import Convolution, read_convolution
from trtplug.model.graph import Graph, Node, attributes
from trtplug.tensor import window_positions

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from trtplug.model.constants import Constants

Extent = int | tuple[object, ...]
"""A size, or a symbol for one."""

Extents = tuple[Extent, ...]

SAME_SHAPE = frozenset((
    "Abs", "BatchNormalization", "Cast", "Celu", "Clip", "Dropout", "Elu", "Erf", "Exp", "Gelu",
    "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "LRN",
    "LayerNormalization", "LeakyRelu", "Log", "Mish", "Neg", "PRelu", "Reciprocal", "Relu",
    "Selu", "Sigmoid", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tanh",
    "ThresholdedRelu",
))  # fmt: skip
BROADCAST = frozenset((
    "Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum",
))  # fmt: skip


class ExtentTable:
    """Extents of the tensors of one graph; None where not even the rank is known."""

    def __init__(self, graph: Graph, constants: Constants, above: ExtentTable | None) -> None:
        self._constants = constants
        self._above = above
        self._fresh = 0
        self._known: dict[str, Extents | None] = {}
        # Symbols of two graphs must never look alike.
        self._scope = id(graph)
        for value in graph.proto.input:
            self._known[value.name] = self._of_value(value)
        for node in graph.nodes:
            self._known.update(self._infer(node))

    def get(self, name: str) -> Extents | None:
        """The extents of a tensor."""
        if name in self._known:
            return self._known[name]
        constant = self._constants.get(name)
        if constant is not None:
            return constant.dims
        return self._above.get(name) if self._above is not None else None

    def _of_value(self, value: onnx.ValueInfoProto) -> Extents | None:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            return None
        return tuple(
            d.dim_value if d.dim_value > 0 else (self._scope, value.name, axis)
            for axis, d in enumerate(tensor.shape.dim)
        )

    def _infer(self, node: Node) -> dict[str, Extents | None]:
        if node.domain or not node.outputs:
            return {}
        rule = _RULES.get(node.op_type)
        first = self.get(node.input(0)) if rule or node.op_type == "Split" else None
        if first is None:
            return {}
        if rule is None:
            return dict(zip(node.outputs, _split(self, node, first), strict=True))
        return {node.outputs[0]: rule(self, node, first)}

    def new(self) -> Extent:
        """A symbol that equals no other."""
        self._fresh += 1
        return (self._scope, self._fresh)

    def weight_dims(self, node: Node) -> tuple[int, ...] | None:
        """Dimensions of the second input, where it is constant."""
        constant = self._constants.get(node.input(1))
        return constant.dims if constant is not None else None

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Values of a short constant list of whole numbers, such as the shape given to Reshape."""
        return self._constants.numbers(name)


def _same(_table: ExtentTable, _node: Node, first: Extents) -> Extents:
    return first


def _broadcast(table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    result = first
    for name in node.inputs[1:]:
        other = table.get(name)
        if other is None:
            return None
        rank = max(len(result), len(other))
        one = (1,) * (rank - len(result)) + result
        two = (1,) * (rank - len(other)) + other
        result = tuple(_wider(table, a, b) for a, b in zip(one, two, strict=True))
    return result


def _wider(table: ExtentTable, a: Extent, b: Extent) -> Extent:
    """Size of an axis after broadcasting: a number above 1 wins, since the other is it or 1."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(a, int) else b
    return table.new()


def slide(size: Extent, reach: int, stride: int) -> Extent:
    """As `window_positions`, of a size that may be symbolic."""
    if isinstance(size, int):
        return window_positions(size, reach, stride)
    if stride == 1:
        return size if reach == -1 else ("shift", size, reach + 1)
    return ("slide", size, reach, stride)


def _conv(table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    weight = table.weight_dims(node)
    if weight is None or len(weight) != len(first):
        return None
    try:
        conv = read_convolution(node, weight, "")
    except NodeInvalidError:
        return None
    return (first[0], conv.channels, *conv_spatial(conv, first[2:]))


def conv_spatial(conv: Convolution, sizes: Extents) -> Extents:
    """Sizes of a convolution's output on its spatial axes."""
    rank = len(sizes)
    if conv.auto_pad.startswith("SAME"):
        return tuple(slide(n, -1, s) for n, s in zip(sizes, conv.strides, strict=True))
    reaches = [conv.pads[i] + conv.pads[i + rank] - conv.extents[i] for i in range(rank)]
    return tuple(slide(n, r, s) for n, r, s in zip(sizes, reaches, conv.strides, strict=True))


def _pool(table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    given = attributes(node.proto)
    kernel = given.get("kernel_shape", ())
    rank = len(kernel)
    if rank != len(first) - 2:
        return None
    if given.get("ceil_mode") or given.get("auto_pad", "NOTSET") != "NOTSET":
        return (*first[:2], *(table.new() for _ in range(rank)))
    conv = Convolution(
        channels=0,
        channels_per_group=0,
        kernel_shape=tuple(kernel),
        strides=given.get("strides") or (1,) * rank,
        pads=given.get("pads") or (0,) * (2 * rank),
        dilations=given.get("dilations") or (1,) * rank,
        group=1,
        auto_pad="NOTSET",
    )
    if len(conv.strides) != rank or len(conv.pads) != 2 * rank or len(conv.dilations) != rank:
        return None
    return (*first[:2], *conv_spatial(conv, first[2:]))


def _global_pool(_table: ExtentTable, _node: Node, first: Extents) -> Extents:
    return (*first[:2], *(1 for _ in first[2:]))


def _concat(table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    shapes = [table.get(name) for name in node.inputs]
    axis = attributes(node.proto).get("axis", 1)
    if any(s is None or len(s) != len(first) for s in shapes) or not -len(first) <= axis < len(
        first
    ):
        return None
    along = [s[axis] for s in shapes if s is not None]
    numbers = [n for n in along if isinstance(n, int)]
    total = sum(numbers) if len(numbers) == len(along) else table.new()
    result = list(first)
    result[axis] = total
    return tuple(result)


def _transpose(_table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    order = attributes(node.proto).get("perm") or tuple(reversed(range(len(first))))
    return tuple(first[i] for i in order) if sorted(order) == list(range(len(first))) else None


def _reshape(table: ExtentTable, node: Node, first: Extents) -> Extents | None:
    wanted = table.numbers(node.input(1))
    if wanted is None or len([n for n in wanted if n == -1]) > 1:
        return None
    copied = not attributes(node.proto).get("allowzero")
    result: list[Extent] = []
    for axis, n in enumerate(wanted):
        kept = first[axis] if n == 0 and copied and axis < len(first) else n
        result.append(table.new() if kept == -1 else kept)
    total = [n for n in first if isinstance(n, int)]
    others = [n for n in result if isinstance(n, int)]
    if -1 in wanted and len(total) == len(first) and len(others) == len(result) - 1:
        result[wanted.index(-1)] = math.prod(total) // max(1, math.prod(others))
    return tuple(result)


def _split(table: ExtentTable, node: Node, first: Extents) -> list[Extents | None]:
    """Extents of each part; a part of unknown size gets a fresh symbol."""
    given = attributes(node.proto)
    axis, parts = given.get("axis", 0), len(node.outputs)
    if not -len(first) <= axis < len(first):
        return [None] * parts
    sizes = given.get("split") or (table.numbers(node.input(1)) if node.input(1) else None)
    whole = first[axis]
    if sizes is None and isinstance(whole, int):
        part = -(-whole // parts)
        sizes = (*(part for _ in range(parts - 1)), whole - part * (parts - 1))
    results: list[Extents | None] = []
    for i in range(parts):
        result = list(first)
        result[axis] = sizes[i] if sizes and len(sizes) == parts else table.new()
        results.append(tuple(result))
    return results


_RULES: dict[str, Callable[[ExtentTable, Node, Extents], Extents | None]] = {
    **dict.fromkeys(SAME_SHAPE, _same),
    **dict.fromkeys(BROADCAST, _broadcast),
    "AveragePool": _pool,
    "Concat": _concat,
    "Conv": _conv,
    "GlobalAveragePool": _global_pool,
    "GlobalMaxPool": _global_pool,
    "MaxPool": _pool,
    "Reshape": _reshape,
    "Transpose": _transpose,
}
