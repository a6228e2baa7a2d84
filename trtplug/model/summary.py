"""What an ONNX file holds, in figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import TrtplugError
from trtplug.model.external import tensors_of
from trtplug.model.flops import node_flops
from trtplug.model.graph import node_labels
from trtplug.model.shapes import infer_shapes
from trtplug.model.validate import validate
from trtplug.tensor import TensorSpec

if TYPE_CHECKING:
    from trtplug.model.load import Model
    from trtplug.tensor import ShapeRange

SCHEMA = "trtplug.model/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """An ONNX model in figures."""

    schema: str
    file: str
    sha256: str
    bytes: int
    external_files: tuple[str, ...]
    ir_version: int
    opsets: Mapping[str, int]
    """Domain -> version; the standard domain is `ai.onnx`."""
    producer: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    dynamic_axes: Mapping[str, tuple[str, ...]]
    """Input -> its dynamic axes, as `axis 2 (height)`."""
    nodes: int
    operators: Mapping[str, int]
    """Operator -> number of nodes, most frequent first."""
    parameters: int
    """Elements in initializers and in tensors of Constant nodes."""
    flops: int | None
    """Of one run at `shapes`; None where the inputs are dynamic and no shape was given."""
    flops_unknown_nodes: int | None
    """Nodes that `flops` leaves out, since their operations are not known."""
    shapes: tuple[str, ...]
    """Sizes that `flops` stands for."""
    shapes_problem: str
    """Why there is no `flops`; empty where there is."""


def summarize(model: Model, ranges: tuple[ShapeRange, ...] | None) -> ModelSummary:
    """The summary; operations are counted at the opt sizes of `ranges`, where given.

    Raises:
        NodeInvalidError: a node that contradicts itself, as in every command.
    """
    validate(model)
    nodes = node_labels(model.proto.graph)
    counted = Counter(node.op_type for node in nodes.values())
    flops, unknown, problem = _flops(model, ranges)
    return ModelSummary(
        schema=SCHEMA,
        file=model.path.name,
        sha256=model.sha256,
        bytes=model.path.stat().st_size,
        external_files=tuple(f.location for f in model.external),
        ir_version=model.ir_version,
        opsets={o.domain or "ai.onnx": o.version for o in model.proto.opset_import},
        producer=f"{model.proto.producer_name} {model.proto.producer_version}".strip(),
        inputs=model.inputs,
        outputs=model.outputs,
        dynamic_axes={s.name: _axes(s) for s in model.inputs if s.is_dynamic},
        nodes=len(nodes),
        operators=dict(counted.most_common()),
        parameters=sum(math.prod(t.dims) for t in tensors_of(model.proto)),
        flops=flops,
        flops_unknown_nodes=unknown,
        shapes=tuple(str(r) for r in ranges or ()),
        shapes_problem=problem,
    )


def _axes(spec: TensorSpec) -> tuple[str, ...]:
    return tuple(
        f"axis {axis}" + (f" ({dim})" if dim else "")
        for axis, dim in enumerate(spec.shape)
        if not isinstance(dim, int)
    )


def _flops(
    model: Model, ranges: tuple[ShapeRange, ...] | None
) -> tuple[int | None, int | None, str]:
    if ranges is None:
        return None, None, "the inputs are dynamic; give --shape"
    try:
        shapes = infer_shapes(model, {r.name: r.opt for r in ranges})
    except TrtplugError as error:
        return None, None, error.message
    found = [node_flops(n, shapes) for n in node_labels(model.proto.graph).values()]
    return sum(f or 0 for f in found), sum(f is None for f in found), ""
