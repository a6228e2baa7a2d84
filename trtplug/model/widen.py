"""A float32 copy of a bfloat16 model: ONNX Runtime's CPU cannot run bfloat16 convolutions.

Every bfloat16 value is a float32 value, so the copy gives what exact arithmetic on the model's own
weights gives, up to the rounding of float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from trtplug.model.graph import subgraphs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def has_bfloat16(model: ModelProto) -> bool:
    """Whether any stored tensor, input or output is bfloat16."""
    return any(
        tensor.data_type == TensorProto.BFLOAT16
        for graph in _graphs(model.graph)
        for tensor in _tensors(graph)
    ) or any(
        value.type.tensor_type.elem_type == TensorProto.BFLOAT16
        for value in (*model.graph.input, *model.graph.output)
    )


def widen(model: ModelProto, folder: Path) -> ModelProto:
    """The copy; external data of bfloat16 tensors, in `folder`, are read into it."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for graph in list(_graphs(copy.graph)):
        for tensor in _tensors(graph):
            _widen_tensor(tensor, folder)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == TensorProto.BFLOAT16:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        _widen_types(graph.node)
    for function in copy.functions:
        _widen_types(function.node)
        for node in function.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _widen_tensor(attribute.t, folder)
    return copy


def _widen_types(nodes: Iterable[NodeProto]) -> None:
    """Casts to bfloat16, and other operators that say a type by number."""
    for node in nodes:
        for attribute in node.attribute:
            named = attribute.name in ("to", "dtype") and attribute.type == AttributeProto.INT
            if named and attribute.i == TensorProto.BFLOAT16:
                attribute.i = TensorProto.FLOAT


def _widen_tensor(tensor: TensorProto, folder: Path) -> None:
    if tensor.data_type == TensorProto.BFLOAT16:
        values = numpy_helper.to_array(tensor, str(folder)).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for below in subgraphs_of(node):
            yield from _graphs(below)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
