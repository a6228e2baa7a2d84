"""A copy of a model without its weights, for tools that serialize what they are given.

Large tensors become inputs of the same size and type. Knows no values but small ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from onnx import ModelProto, NodeProto, TensorProto

from trtplug.model.save import ModelParts, NewTensor, Tensor, without

if TYPE_CHECKING:
    import onnx

    from trtplug.tensor import Sizes

LARGEST_KEPT_ELEMENTS = 128
"""Tensors up to this size stay in the copy: shapes, axes, scales, whose values inference needs."""

OLDEST_IR = 4
"""Before it, tensors had to be inputs too; the copy has inputs that are no tensors any more."""


def strip_weights(parts: ModelParts) -> tuple[ModelProto, list[TensorProto]]:
    """The copy, and headers of the top graph's tensors: name, type and dimensions, no data."""
    stripped: ModelProto = without(parts.head, ModelProto)
    stripped.ir_version = max(stripped.ir_version, OLDEST_IR)
    graph = stripped.graph
    graph.CopyFrom(parts.graph)
    del graph.input[:]
    tensors = {t.name for t in parts.tensors}
    graph.input.extend(v for v in parts.graph.input if v.name not in tensors)
    headers: list[TensorProto] = []
    for tensor in parts.tensors:
        _strip_tensor(tensor, tensor.name, graph, headers)
    for node in parts.nodes:
        constant = constant_tensor(node)
        if constant is not None and _is_large(constant):
            _strip_tensor(constant, node.output[0], graph, headers)
        else:
            graph.node.append(node)
    return stripped, headers


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node that holds one."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or not node.output:
        return None
    return next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)


def set_dims(tensor_type: onnx.TypeProto.Tensor, sizes: Sizes) -> None:
    """Gives a type fixed dimensions."""
    del tensor_type.shape.dim[:]
    tensor_type.shape.SetInParent()
    for size in sizes:
        tensor_type.shape.dim.add(dim_value=size)


def _is_large(tensor: TensorProto) -> bool:
    external = tensor.data_location == TensorProto.EXTERNAL
    return external or math.prod(tensor.dims) > LARGEST_KEPT_ELEMENTS


def _strip_tensor(
    tensor: Tensor, name: str, graph: onnx.GraphProto, headers: list[TensorProto]
) -> None:
    header = TensorProto(name=name, dims=tensor.dims)
    header.data_type = tensor.elem_type if isinstance(tensor, NewTensor) else tensor.data_type
    headers.append(header)
    if not isinstance(tensor, NewTensor) and not _is_large(tensor):
        kept = graph.initializer.add()
        kept.CopyFrom(tensor)
        kept.name = name
        return
    value = graph.input.add(name=name)
    value.type.tensor_type.elem_type = header.data_type
    set_dims(value.type.tensor_type, tuple(header.dims))
