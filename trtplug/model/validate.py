"""What a model must not be, found before any builder starts; and what its user should know.

An error names the node and both values that contradict each other. A warning is one sentence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from trtplug.errors import NodeInvalidError, RewriteInvalidError
from trtplug.model.constants import Constant, Constants, read_tensor
from trtplug.model.convolution import read_convolution
from trtplug.model.external import tensors_of
from trtplug.model.graph import Graph, Node, attributes, index_graph
from trtplug.model.save import NewTensor
from trtplug.model.schema import Schemas
from trtplug.model.strip import strip_weights
from trtplug.tensor import dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtplug.model.load import Model
    from trtplug.model.save import ModelParts

FIRST_IR_WITHOUT_WEIGHT_INPUTS = 4

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_PLAIN_BYTES = 1 << 16
_CHUNK_ELEMENTS = 1 << 20


def validate(model: Model) -> None:
    """Refuses nodes that contradict themselves.

    Raises:
        NodeInvalidError: a node with too many or too few inputs or outputs, or an attribute of
            another type than the standard's; a convolution whose attributes do not fit its weight;
            a normalisation with a negative variance or with parameters of unlike lengths; nodes
            that wait for each other.
    """
    validate_nodes(model, index_graph(model.proto.graph))


def validate_nodes(model: Model, root: Graph) -> None:
    """As `validate`, for a model that is indexed already."""
    schemas = Schemas(model.opset)
    tables: dict[Graph | None, Constants | None] = {None: None}
    for graph in root.walk():
        _refuse_cycles(graph, model)
        constants = Constants(
            graph, model.path.parent, tables[graph.parent], keep_overridable=False
        )
        tables[graph] = constants
        for node in graph.nodes:
            problem = schemas.problem(node)
            if problem is not None:
                raise _invalid(node, problem, model)
            if node.is_op("Conv"):
                _check_convolution(node, constants, model)
            elif node.is_op("BatchNormalization"):
                _check_normalization(node, constants, model)


def _refuse_cycles(graph: Graph, model: Model) -> None:
    for node in graph.nodes:
        for name in node.inputs:
            maker = graph.producer.get(name)
            if maker is not None and maker.position >= node.position:
                raise _invalid(node, f"it waits for {maker.label!r}, which waits for it", model)


def _invalid(node: Node, problem: str, model: Model) -> NodeInvalidError:
    return NodeInvalidError(
        path=str(model.path), node=node.label, op_type=node.op_type, problem=problem
    )


def _check_convolution(node: Node, constants: Constants, model: Model) -> None:
    weight = constants.get(node.input(1))
    if weight is None:
        return
    conv = read_convolution(node, weight.dims, str(model.path))
    bias = constants.get(node.input(2))
    if bias is not None and bias.elem_type != weight.elem_type:
        types = f"{dtype_name(bias.elem_type)}; its weight is {dtype_name(weight.elem_type)}"
        raise _invalid(node, f"its bias is of type {types}", model)
    if bias is not None and bias.dims != (conv.channels,):
        problem = f"its bias is {list(bias.dims)}; its weight {list(weight.dims)} needs "
        raise _invalid(node, f"{problem}[{conv.channels}]", model)


def _check_normalization(node: Node, constants: Constants, model: Model) -> None:
    found = [constants.get(node.input(slot)) for slot in range(1, 5)]
    known = [c for c in found if c is not None]
    lengths = [c.dims for c in known]
    if len(set(lengths)) > 1:
        shown = ", ".join(str(list(d)) for d in lengths)
        raise _invalid(node, f"its parameters are of unlike sizes: {shown}", model)
    variance = found[3]
    if variance is None or attributes(node.proto).get("training_mode"):
        return
    _check_variance(node, variance, model)


def _check_variance(node: Node, variance: Constant, model: Model) -> None:
    epsilon = attributes(node.proto).get("epsilon", 1e-5)
    values = variance.read().astype(np.float64).reshape(-1)
    # Rounding leaves variances such as -1e-12; epsilon makes up for those, by its very purpose.
    low = values + epsilon < 0
    if low.any():
        channel = int(np.argmax(low))
        problem = f"variance {values[channel]:g} of channel {channel} is negative beyond epsilon "
        raise _invalid(node, f"{problem}{epsilon:g}", model)


def model_warnings(model: Model) -> tuple[str, ...]:
    """What is odd about a model, one sentence each; reads every weight once, in chunks."""
    return (*_weight_inputs(model), *_training(model), *_nonfinite(model))


def _weight_inputs(model: Model) -> Iterator[str]:
    graph = model.proto.graph
    both = {v.name for v in graph.input} & {t.name for t in graph.initializer}
    if both and model.ir_version < FIRST_IR_WITHOUT_WEIGHT_INPUTS:
        yield (
            f"{len(both)} weights are listed as graph inputs too, as IR {model.ir_version} wants; "
            "they are treated as constants"
        )


def _training(model: Model) -> Iterator[str]:
    for node in model.proto.graph.node:
        if node.op_type == "BatchNormalization" and attributes(node).get("training_mode"):
            yield (
                f"node {node.name or node.output[0]!r} (BatchNormalization) runs on batch "
                "statistics; export the model again in evaluation mode"
            )


def _nonfinite(model: Model) -> Iterator[str]:
    for tensor in tensors_of(model.proto):
        if tensor.data_type in _FLOATS and not _is_finite(tensor, model.path.parent):
            yield f"tensor {tensor.name!r} holds NaN or infinite values"


def _is_finite(tensor: TensorProto, folder: Path) -> bool:
    values = _flat(tensor, folder)
    return all(
        np.isfinite(values[i : i + _CHUNK_ELEMENTS]).all()
        for i in range(0, values.size, _CHUNK_ELEMENTS)
    )


def _flat(tensor: TensorProto, folder: Path) -> np.ndarray[Any, np.dtype[Any]]:
    """All values in a row; those of external data stay on disk until they are looked at."""
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    if tensor.data_location == TensorProto.EXTERNAL:
        entries = {e.key: e.value for e in tensor.external_data}
        count = math.prod(tensor.dims)
        if not count:
            return np.empty(0, dtype)
        offset = int(entries.get("offset", 0))
        return np.memmap(folder / entries["location"], dtype, "r", offset, (count,))
    if tensor.raw_data and len(tensor.raw_data) % dtype.itemsize == 0:
        return np.frombuffer(tensor.raw_data, dtype)
    return read_tensor(tensor, folder).reshape(-1)


def check_parts(parts: ModelParts, path: Path) -> None:
    """Runs ONNX's checker on a model in parts, without copying its weights.

    Raises:
        RewriteInvalidError: the checker refuses it, or a tensor's data do not fill its dimensions.
    """
    stripped, _ = strip_weights(parts)
    try:
        onnx.checker.check_model(stripped)
        for value in parts.graph.input:
            # A weight that is an input too has lost its own entry in the copy.
            onnx.checker.check_value_info(value)
        for tensor in parts.tensors:
            if not isinstance(tensor, NewTensor):
                _check_tensor(tensor)
    except (onnx.checker.ValidationError, ValueError) as error:
        problem = str(error).strip().splitlines()[0]
        raise RewriteInvalidError(path=str(path), problem=problem) from error


def _check_tensor(tensor: TensorProto) -> None:
    """The checker's rules for one tensor; a plain one with raw data is not worth serializing."""
    known = tensor.data_type in TensorProto.DataType.values() and tensor.data_type > 0
    raw_bytes = len(tensor.raw_data)
    if known and raw_bytes > _PLAIN_BYTES and tensor.data_location != TensorProto.EXTERNAL:
        size: int = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        if raw_bytes == math.prod(tensor.dims) * size:
            return
    if tensor.data_location != TensorProto.EXTERNAL:
        onnx.checker.check_tensor(tensor)
