"""Makes a float32 model compute in float16 or bfloat16, since TensorRT takes types from the model.

Every node computes in the target type but for islands, see `precision_rules`. A cheap node between
two islands joins them, so that nothing is cast down and up again. Inputs and outputs keep their
type unless asked otherwise. The model is never changed; weights are converted when written.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from onnx import version_converter

from trtplug.errors import PrecisionError, UsageError
from trtplug.model.constants import Constants
from trtplug.model.graph import Graph, Node, index_graph
from trtplug.model.precision_rules import Island, Rules
from trtplug.model.precision_write import write_in_precision
from trtplug.model.save import ModelParts, parts_of
from trtplug.model.shapes import infer_shapes
from trtplug.model.strip import constant_tensor, strip_weights
from trtplug.settings import matches_any
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from onnx import ModelProto, TensorProto

    from trtplug.model.load import Model


def raise_opset(model: Model, opset: int, precision: str) -> Model:
    """The model in a later opset, by ONNX's own converter.

    It is given the model without its weights, and the weights are put back after.

    Raises:
        PrecisionError: the converter cannot take the model there.
    """
    stripped, _ = strip_weights(parts_of(model.proto, model.path.parent))
    try:
        raised = version_converter.convert_version(stripped, opset)
    except Exception as error:  # ONNX's converter raises whatever its C++ raised.
        raise PrecisionError(
            path=str(model.path),
            precision=precision,
            problem=f"it needs opset {opset} and ONNX's converter fails from opset {model.opset}: "
            f"{str(error).strip().splitlines()[0]}",
            advice="export the model again with a later opset",
        ) from error
    _put_back(model.proto, raised)
    return dataclasses.replace(model, proto=raised, opset=opset, ir_version=raised.ir_version)


def _put_back(source: ModelProto, raised: ModelProto) -> None:
    """Weights that the stripped copy had as inputs become initializers again."""
    tensors: dict[str, TensorProto] = {t.name: t for t in source.graph.initializer}
    for node in source.graph.node:
        constant = constant_tensor(node)
        if constant is not None:
            tensors[node.output[0]] = constant
    there = {t.name for t in raised.graph.initializer}
    wanted = {v.name for v in source.graph.input} - {t.name for t in source.graph.initializer}
    inputs = [v for v in raised.graph.input if v.name in wanted]
    for value in raised.graph.input:
        if value.name not in wanted and value.name in tensors and value.name not in there:
            kept = raised.graph.initializer.add()
            kept.CopyFrom(tensors[value.name])
            kept.name = value.name
    copies = [type(v).FromString(v.SerializeToString()) for v in inputs]
    del raised.graph.input[:]
    raised.graph.input.extend(copies)


Precision = Literal["fp16", "bf16"]
IoPrecision = Literal["keep", "match"]

FIRST_OPSET_WITH_BF16 = 22
"""Conv, pooling and most activations take bfloat16 since then."""

_JOINS = (
    "Abs", "Add", "Clip", "Concat", "Div", "Expand", "Flatten", "Gather", "Identity", "Max", "Min",
    "Mul", "Neg", "Pad", "Relu", "Reshape", "Slice", "Split", "Sqrt", "Squeeze", "Sub", "Transpose",
    "Unsqueeze", "Where",
)  # fmt: skip
"""Cheap in any type: between two islands they are computed in float32 too."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrecisionChange:
    """A model in another precision, and what was left in float32."""

    parts: ModelParts
    islands: tuple[Island, ...]
    converted: int
    """Nodes that compute in the target type."""


def change_precision(
    model: Model,
    precision: Precision,
    *,
    io: IoPrecision = "keep",
    keep_fp32: tuple[str, ...] = (),
) -> PrecisionChange:
    """The model in `precision`.

    Args:
        model: never changed.
        precision: `fp16` or `bf16`.
        io: `keep` leaves inputs and outputs as they are, `match` gives them the target type too.
        keep_fp32: globs over node labels that stay in float32.

    Raises:
        UsageError: a glob that no node matches.
        PrecisionError: no node would change, or the opset that bfloat16 needs is out of reach.
    """
    dtype = element_type(precision).name
    if precision == "bf16" and model.opset < FIRST_OPSET_WITH_BF16:
        model = raise_opset(model, FIRST_OPSET_WITH_BF16, precision)
    graph = index_graph(model.proto.graph)
    _check_globs(graph, keep_fp32)
    shapes = infer_shapes(model, {})
    constants = Constants(graph, model.path.parent, keep_overridable=False)
    rules = Rules(graph, constants, dtype, model.opset, keep_fp32, shapes.dtype)
    islands = rules.islands()
    low = _choose(graph, islands, rules)
    if not any(rules.is_float(name) for node in low for name in node.outputs):
        raise PrecisionError(
            path=str(model.path),
            precision=precision,
            problem="no node computes in float32 that could compute in it",
            advice="the model may be in that precision already: use --precision keep",
        )
    shown = sorted(islands.items(), key=lambda pair: pair[0].position)
    return PrecisionChange(
        parts=write_in_precision(model, graph, frozenset(low), rules, match_io=io == "match"),
        islands=tuple(Island(node=n.label, op_type=n.op_type, reason=r) for n, r in shown),
        converted=len(low),
    )


def _check_globs(graph: Graph, keep_fp32: tuple[str, ...]) -> None:
    labels = [node.label for node in graph.nodes]
    for glob in keep_fp32:
        if not any(matches_any(label, (glob,)) for label in labels):
            near = difflib.get_close_matches(glob, labels, n=1, cutoff=0.3)
            advice = f"did you mean {near[0]!r}?" if near else "`trtplug sites` lists node names"
            raise UsageError(f"--keep-fp32 {glob!r} matches no node", advice)


def _choose(graph: Graph, islands: Collection[Node], rules: Rules) -> set[Node]:
    """The nodes that compute in the target type."""
    low = {n for n in graph.nodes if n not in islands and rules.can_change(n)}
    for group in _cheap_groups(graph, low, rules):
        if _is_between(group, graph, low, rules):
            low -= group
    return low


def _cheap_groups(graph: Graph, low: set[Node], rules: Rules) -> Iterator[set[Node]]:
    """Cheap nodes that hand float tensors to each other, together."""
    waiting = {n for n in low if n.is_op(*_JOINS)}
    while waiting:
        group: set[Node] = set()
        edge = [waiting.pop()]
        while edge:
            node = edge.pop()
            group.add(node)
            near = {n for n in _neighbours(node, graph, rules) if n in waiting}
            waiting -= near
            edge += near
        yield group


def _neighbours(node: Node, graph: Graph, rules: Rules) -> Iterator[Node]:
    """Makers and readers of a node's float tensors; constants are no neighbours."""
    for name in filter(rules.is_float, node.inputs):
        maker = graph.producer.get(name)
        if maker is not None and not maker.is_op("Constant"):
            yield maker
    for name in filter(rules.is_float, node.outputs):
        yield from graph.consumers.get(name, ())


def _is_between(group: set[Node], graph: Graph, low: set[Node], rules: Rules) -> bool:
    """Whether a group has float32 neighbours only, above and below."""
    if any(name in graph.outputs for node in group for name in node.outputs):
        return False
    outside = {m for n in group for m in _neighbours(n, graph, rules)} - group
    above = any(graph.producer.get(n) in outside for node in group for n in node.inputs)
    return above and len(outside) > 1 and not outside & low
