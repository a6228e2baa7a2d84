"""Makes a float32 model compute in float16 or bfloat16, since TensorRT takes types from the model.

Every node computes in the target type but for islands, see `precision_rules`. A cheap node between
two islands joins them, so that nothing is cast down and up again. Inputs and outputs keep their
type unless asked otherwise. The model is never changed; weights are converted when written.
"""

from __future__ import annotations

import difflib
import fnmatch
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtplug.errors import PrecisionError, UsageError
from trtplug.model.constants import Constants
from trtplug.model.graph import Graph, Node, index_graph
from trtplug.model.opset import raise_opset
from trtplug.model.precision_rules import DTYPES, Island, Rules
from trtplug.model.precision_write import write_in_precision
from trtplug.model.save import ModelParts
from trtplug.model.shapes import infer_shapes

if TYPE_CHECKING:
    from collections.abc import Collection

    from trtplug.model.load import Model

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
    dtype = DTYPES[precision]
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
        if not fnmatch.filter(labels, glob):
            near = difflib.get_close_matches(glob, labels, n=1, cutoff=0.3)
            advice = f"did you mean {near[0]!r}?" if near else "`trtplug sites` lists node names"
            raise UsageError(f"--keep-fp32 {glob!r} matches no node", advice)


def _choose(graph: Graph, islands: Collection[Node], rules: Rules) -> set[Node]:
    """The nodes that compute in the target type."""
    low = {n for n in graph.nodes if n not in islands and rules.can_change(n)}
    waiting = list(islands)
    while waiting:
        near = waiting.pop()
        makers = [graph.producer.get(n) for n in near.inputs]
        readers = [r for n in near.outputs for r in graph.consumers.get(n, ())]
        for node in (*makers, *readers):
            if node is not None and node in low and _is_between(node, graph, low, rules):
                low.discard(node)
                waiting.append(node)
    return low


def _is_between(node: Node, graph: Graph, low: set[Node], rules: Rules) -> bool:
    """Whether a cheap node has float32 neighbours only, above and below."""
    if not node.is_op(*_JOINS) or any(n in graph.outputs for n in node.outputs):
        return False
    makers = [graph.producer.get(n) for n in node.inputs if rules.is_float(n)]
    data = [m for m in makers if m is not None and not m.is_op("Constant")]
    readers = [r for n in node.outputs if rules.is_float(n) for r in graph.consumers.get(n, ())]
    return bool(data and readers) and not any(n in low for n in (*data, *readers))
