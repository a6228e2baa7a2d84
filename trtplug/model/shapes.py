"""The size and type of every tensor of a model at given input sizes.

ONNX's own shape inference does the work, on a copy that holds no weights: large tensors become
inputs of the same size, so that nothing big is ever serialized, and the model itself stays as it
is.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx
from onnx import (
    GraphProto,
    ModelProto,
    helper,
    numpy_helper,
    shape_inference,
)
from onnx.checker import ValidationError
from onnx.shape_inference import InferenceError

from trtplug.errors import NodeInvalidError, ShapeError
from trtplug.model.graph import subgraphs_of
from trtplug.model.save import parts_of
from trtplug.model.shape_values import shape_values
from trtplug.model.strip import set_dims, strip_weights
from trtplug.tensor import Sizes, dtype_name, find_element_type

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import numpy as np

    from trtplug.model.load import Model

    Value = np.ndarray[Any, np.dtype[Any]]

_log = logging.getLogger(__name__)

MOST_ROUNDS = 8
"""Rounds of inference; each gets past the Reshapes that the one before could not size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeTable:
    """Sizes and types by tensor name; subgraphs' tensors are in it too."""

    _dims: Mapping[str, Sizes]
    _dtypes: Mapping[str, str]

    def dims(self, name: str) -> Sizes | None:
        """Size of each axis; None where inference could not tell all of them."""
        return self._dims.get(name)

    def dtype(self, name: str) -> str | None:
        """ONNX's name of the element type in lower case, such as `float`."""
        return self._dtypes.get(name)

    def elements(self, name: str) -> int | None:
        """Number of elements."""
        dims = self._dims.get(name)
        return None if dims is None else math.prod(dims)

    def bytes(self, name: str) -> int | None:
        """Size in memory, without padding."""
        elements, element = self.elements(name), find_element_type(self._dtypes.get(name, ""))
        if elements is None or element is None or not element.bits:
            return None
        return -(-elements * element.bits // 8)


def infer_shapes(model: Model, sizes: Mapping[str, Sizes]) -> ShapeTable:
    """Sizes and types of all tensors, where the inputs have the given sizes.

    Args:
        model: never changed.
        sizes: input name -> sizes; inputs that are left out keep what the file says.

    Raises:
        NodeInvalidError: an operator's inputs contradict each other at these sizes.
        ShapeError: a tensor would have a negative size, or a convolution or pooling none at all.
    """
    stripped, headers = strip_weights(parts_of(model.proto, model.path.parent))
    for value in stripped.graph.input:
        if value.name in sizes:
            set_dims(value.type.tensor_type, sizes[value.name])
        else:
            _open_odd_axes(value.type.tensor_type)
    # Sizes that the file claims need not hold at these; inference says them anew.
    del stripped.graph.value_info[:]
    for value in stripped.graph.output:
        value.type.tensor_type.ClearField("shape")
    inferred, dims, dtypes = _infer_all(stripped, model)
    for tensor in headers:
        dims[tensor.name] = tuple(tensor.dims)
        dtypes[tensor.name] = dtype_name(tensor.data_type)
    _refuse_empty(model, inferred, dims)
    _add_claims(model, dims, dtypes)
    return ShapeTable(_dims=dims, _dtypes=dtypes)


def _add_claims(model: Model, dims: dict[str, Sizes], dtypes: dict[str, str]) -> None:
    """What the file says of tensors that inference cannot tell; sizes only where all are fixed."""
    claimed: dict[str, Sizes] = {}
    types: dict[str, str] = {}
    for value in model.proto.graph.value_info:
        _record(value, claimed, types)
    for name, dtype in types.items():
        dtypes.setdefault(name, dtype)
    if not any(spec.is_dynamic for spec in model.inputs):
        for name, sizes in claimed.items():
            dims.setdefault(name, sizes)


def _open_odd_axes(tensor_type: onnx.TypeProto.Tensor) -> None:
    """Exporters write "dynamic" as a size of -1 or 0, which inference takes for a size."""
    for dim in tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value <= 0:
            dim.Clear()


def _infer_all(
    stripped: ModelProto, model: Model
) -> tuple[ModelProto, dict[str, Sizes], dict[str, str]]:
    """Inference, and again as long as computing shape values helps it on."""
    inferred = _infer_strictly(stripped, model)
    dims, dtypes = _collect(inferred)
    solved: set[str] = set()
    for _ in range(MOST_ROUNDS):
        stuck = any(o and o not in dims for node in stripped.graph.node for o in node.output)
        values = _new_values(stripped, dims, solved) if stuck else {}
        if not values:
            break
        solved |= set(values)
        _make_constant(stripped.graph, values)
        inferred = _infer(stripped)
        dims, dtypes = _collect(inferred)
    return inferred, dims, dtypes


def _infer_strictly(stripped: ModelProto, model: Model) -> ModelProto:
    """Strict, so that contradictions show; where strictness fails for less, without it."""
    try:
        return _onnx_infer(stripped, strict=True)
    except InferenceError as error:
        _raise_if_proof(str(error), model)
    except _REFUSALS as error:
        _log.debug("no strict shape inference: %s", error)
    return _infer(stripped)


def _onnx_infer(stripped: ModelProto, *, strict: bool) -> ModelProto:
    """ONNX's inference, with the values of shapes where computing them is safe.

    Inside local functions it keeps a record of some 200 bytes for each element of any tensor of one
    axis: one input of 2**31 elements filled 24 GB (seen with onnx 1.23).
    """
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in stripped.graph.input]
    small = all(math.prod(dims) <= _MOST_PROPAGATED for dims in shapes)
    safe = small or not stripped.functions
    return shape_inference.infer_shapes(stripped, strict_mode=strict, data_prop=safe)


_MOST_PROPAGATED = 1 << 24
"""Elements: 3 GB at the very worst."""

_REFUSALS = (
    InferenceError,
    ValidationError,
    RuntimeError,
    ValueError,
    IndexError,
    MemoryError,
    OverflowError,
)
"""What inference raises for a model that it cannot take: errors of its own, and those of C++."""


def _infer(stripped: ModelProto) -> ModelProto:
    try:
        return _onnx_infer(stripped, strict=False)
    except _REFUSALS as error:
        _log.info("no shape inference: %s", error)
        # A model that inference cannot take at all: nothing is known but what it says itself.
        return stripped


def _collect(inferred: ModelProto) -> tuple[dict[str, Sizes], dict[str, str]]:
    dims: dict[str, Sizes] = {}
    dtypes: dict[str, str] = {}
    for graph in _graphs(inferred.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            _record(value, dims, dtypes)
    return dims, dtypes


def _new_values(
    stripped: ModelProto, dims: Mapping[str, Sizes], solved: set[str]
) -> dict[str, Value]:
    graph = stripped.graph
    values = shape_values(graph.node, graph.initializer, dims)
    constant = {n.output[0] for n in graph.node if n.op_type == "Constant"}
    return {k: v for k, v in values.items() if k not in solved and k not in constant}


def _make_constant(graph: GraphProto, values: Mapping[str, Value]) -> None:
    """Turns the makers of the values into constants, in place."""
    for node in graph.node:
        if node.output and node.output[0] in values:
            tensor = numpy_helper.from_array(values[node.output[0]])
            output = node.output[0]
            node.Clear()
            node.CopyFrom(helper.make_node("Constant", [], [output], value=tensor))


_PROOFS = re.compile(
    r"Incompatible dimensions|Dimension mismatch|Mismatch between number of|"
    r"Can't merge shape|incompatible with|does not match|should be equal|must be equal",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\(op_type:([^,)]*)(?:, node name: ([^)]*))?\):")


def _raise_if_proof(text: str, model: Model) -> None:
    """Turns inference's complaint into an error of ours, where it says that sizes contradict."""
    for line in text.splitlines():
        if not _PROOFS.search(line):
            continue
        where = _WHERE.search(line)
        problem = line[where.end() :] if where else line
        raise NodeInvalidError(
            path=str(model.path),
            node=where[2] or "(unnamed)" if where else "(unknown)",
            op_type=where[1] if where else "unknown operator",
            problem=re.sub(r"^\s*\[\w+\]\s*", "", problem).strip(),
        )


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        for below in subgraphs_of(node):
            yield from _graphs(below)


def _record(value: onnx.ValueInfoProto, dims: dict[str, Sizes], dtypes: dict[str, str]) -> None:
    tensor = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return
    if tensor.elem_type:
        dtypes[value.name] = dtype_name(tensor.elem_type)
    if tensor.HasField("shape") and all(d.HasField("dim_value") for d in tensor.shape.dim):
        dims[value.name] = tuple(d.dim_value for d in tensor.shape.dim)


_WINDOWED = ("Conv", "MaxPool", "AveragePool", "LpPool")


def _refuse_empty(model: Model, inferred: ModelProto, dims: Mapping[str, Sizes]) -> None:
    problems = []
    for node in inferred.graph.node:
        for name in node.output:
            found = dims.get(name, ())
            source = dims.get(node.input[0], (0,)) if node.input else (0,)
            empty = node.op_type in _WINDOWED and min(source, default=0) > 0
            if any(n < 0 for n in found) or (empty and 0 in found):
                problems.append(
                    f"node {node.name or name!r} ({node.op_type}) would give {list(found)}: "
                    "the input is smaller than its window"
                )
    if problems:
        raise ShapeError(model=str(model.path), problems=tuple(problems[:5]))
