"""Raises a model's opset, where a wish needs operators that its own does not have."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from onnx import version_converter

from trtplug.errors import PrecisionError
from trtplug.model.save import parts_of
from trtplug.model.strip import constant_tensor, strip_weights

if TYPE_CHECKING:
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
