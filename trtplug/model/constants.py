"""Which tensors of a graph are constant, and their values, read only when asked for.

Looks through Identity, Constant, ConstantOfShape, Cast, Reshape, Squeeze, Unsqueeze and
Transpose. Sizes and types are known without touching the data: a weight of 1 GB costs nothing
until it is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from trtplug.errors import NodeInvalidError
from trtplug.model.graph import Graph, Node, attributes

if TYPE_CHECKING:
    from pathlib import Path

    Array = np.ndarray[Any, np.dtype[Any]]

LARGEST_ELEMENTS = 2**31
"""A ConstantOfShape of more elements is not expanded: no weight of a real model is so large."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constant:
    """A tensor that is the same in every run."""

    dims: tuple[int, ...]
    elem_type: int
    """ONNX's number of the element type."""
    overridable: bool
    """An initializer that is a graph input too: whoever runs the model may replace it."""
    proto: onnx.TensorProto | None
    """The stored tensor, where the constant is exactly that."""
    read: Callable[[], Array]
    """Gives the values; reads external data where there are any."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.dims)


_LONGEST_LIST = 64


class Constants:
    """The constants of one graph, found on demand and remembered."""

    def __init__(
        self,
        graph: Graph,
        folder: Path,
        above: Constants | None = None,
        *,
        keep_overridable: bool = True,
    ) -> None:
        """Nothing is read yet.

        Args:
            graph: the graph whose tensors are asked for.
            folder: where the model's external data lie.
            above: serves the graph around this one.
            keep_overridable: mark initializers that are graph inputs too.
        """
        self._keep_overridable = keep_overridable
        self._graph = graph
        self._folder = folder
        self._above = above
        self._known: dict[str, Constant | None] = {"": None}

    def get(self, name: str) -> Constant | None:
        """The constant of that name; None where the tensor depends on what the model is fed."""
        if name in self._known:
            return self._known[name]
        chain: list[Node] = []
        graph = self._graph
        # Walks up by hand: a chain of 20,000 nodes would be too deep for recursion.
        while name not in self._known and (node := graph.producer.get(name)) is not None:
            if not node.is_op(*_RULES) or not node.outputs or node.outputs[0] != name:
                self._known[name] = None
                break
            chain.append(node)
            name = node.input(0)
            if node.is_op("Constant") or len(chain) > len(graph.nodes):
                break
        if name not in self._known:
            self._known[name] = self._source(name)
        for node in reversed(chain):
            self._known[node.outputs[0]] = self._derive(node)
        return self._known[chain[0].outputs[0]] if chain else self._known[name]

    def scalar(self, name: str) -> float | None:
        """The value of a constant with one element; None for all else."""
        constant = self.get(name)
        if constant is None or constant.elements != 1 or constant.overridable:
            return None
        return float(constant.read().reshape(()))

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A short constant list of whole numbers, such as the shape given to Reshape."""
        constant = self.get(name)
        if constant is None or constant.overridable or constant.elements > _LONGEST_LIST:
            return None
        values = constant.read().reshape(-1)
        return tuple(map(int, values)) if np.issubdtype(values.dtype, np.integer) else None

    def _source(self, name: str) -> Constant | None:
        tensor = self._graph.initializers.get(name)
        if tensor is not None:
            return _stored(
                tensor,
                self._folder,
                overridable=self._keep_overridable and name in self._graph.inputs,
            )
        if self._graph.defines(name) or self._above is None:
            return None
        return self._above.get(name)

    def _derive(self, node: Node) -> Constant | None:
        rule = _RULES[node.op_type]
        if node.is_op("Constant"):
            return _constant_node(node, self._folder)
        source = self._known.get(node.input(0))
        if source is None:
            return None
        second = self.get(node.input(1)) if node.input(1) else None
        if node.input(1) and second is None:
            return None
        try:
            return rule(node, source, second)
        except (ValueError, TypeError, LookupError, ArithmeticError):
            # A chain that contradicts itself is not constant; whoever validates names the node.
            return None


def _stored(tensor: onnx.TensorProto, folder: Path, *, overridable: bool) -> Constant:
    def read() -> Array:
        return read_tensor(tensor, folder)

    return Constant(
        dims=tuple(tensor.dims),
        elem_type=tensor.data_type,
        overridable=overridable,
        proto=tensor,
        read=read,
    )


def read_tensor(tensor: onnx.TensorProto, folder: Path) -> Array:
    """The values of a stored tensor.

    Raises:
        NodeInvalidError: the data do not fill the dimensions that the tensor claims.
    """
    try:
        return numpy_helper.to_array(tensor, str(folder))
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise NodeInvalidError(
            path=str(folder),
            node=tensor.name,
            op_type="tensor",
            problem=f"its data cannot be read as {list(tensor.dims)}: {error}",
        ) from error


def _constant_node(node: Node, folder: Path) -> Constant | None:
    values = attributes(node.proto)
    if isinstance(tensor := values.get("value"), TensorProto):
        return _stored(tensor, folder, overridable=False)
    for name, dtype in _PLAIN_VALUES.items():
        if name in values:
            return _computed(np.asarray(values[name], dtype))
    return None


_PLAIN_VALUES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def _computed(array: Array) -> Constant:
    return Constant(
        dims=array.shape,
        elem_type=helper.np_dtype_to_tensor_dtype(array.dtype),
        overridable=False,
        proto=None,
        read=lambda: array,
    )


def _like(
    source: Constant, dims: tuple[int, ...], change: Callable[[Array], Array], elem_type: int = 0
) -> Constant:
    return Constant(
        dims=dims,
        elem_type=elem_type or source.elem_type,
        overridable=source.overridable,
        proto=None,
        read=_Changed(source, change),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Changed:
    """Reads a constant and changes its values; a chain of any length needs no recursion."""

    source: Constant
    change: Callable[[Array], Array]

    def __call__(self) -> Array:
        changes, read = [self.change], self.source.read
        while isinstance(read, _Changed):
            changes.append(read.change)
            read = read.source.read
        values = read()
        for change in reversed(changes):
            values = change(values)
        return values


def _identity(_node: Node, source: Constant, _second: Constant | None) -> Constant:
    return source


def _cast(node: Node, source: Constant, _second: Constant | None) -> Constant:
    elem_type = int(attributes(node.proto)["to"]) if node.proto.attribute else source.elem_type
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    return _like(source, source.dims, lambda a: a.astype(dtype), elem_type)


def _constant_of_shape(node: Node, source: Constant, _second: Constant | None) -> Constant:
    dims = tuple(int(n) for n in source.read())
    if math.prod(dims) > LARGEST_ELEMENTS or any(n < 0 for n in dims):
        raise ValueError(dims)
    tensor = attributes(node.proto).get("value")
    fill = np.zeros(1, np.float32) if tensor is None else numpy_helper.to_array(tensor)
    value = fill.reshape(-1)[0]
    return Constant(
        dims=dims,
        elem_type=helper.np_dtype_to_tensor_dtype(fill.dtype),
        overridable=source.overridable,
        proto=None,
        read=lambda: np.full(dims, value, fill.dtype),
    )


def _reshape(_node: Node, source: Constant, second: Constant | None) -> Constant | None:
    if second is None:
        return None
    wanted = [int(n) for n in second.read()]
    dims = [source.dims[i] if n == 0 and i < len(source.dims) else n for i, n in enumerate(wanted)]
    if -1 in dims:
        known = math.prod(n for n in dims if n != -1)
        dims[dims.index(-1)] = source.elements // known if known else 0
    if math.prod(dims) != source.elements:
        raise ValueError(dims)
    return _like(source, tuple(dims), lambda a: a.reshape(dims))


def _axes(node: Node, second: Constant | None) -> tuple[int, ...] | None:
    if second is not None:
        return tuple(int(n) for n in second.read().reshape(-1))
    axes = attributes(node.proto).get("axes")
    return None if axes is None else tuple(axes)


def _unsqueeze(node: Node, source: Constant, second: Constant | None) -> Constant | None:
    axes = _axes(node, second)
    if axes is None:
        return None
    rank = len(source.dims) + len(axes)
    places = {a % rank for a in axes}
    if len(places) != len(axes):
        raise ValueError(axes)
    rest = iter(source.dims)
    dims = tuple(1 if i in places else next(rest) for i in range(rank))
    return _like(source, dims, lambda a: a.reshape(dims))


def _squeeze(node: Node, source: Constant, second: Constant | None) -> Constant:
    axes = _axes(node, second)
    rank = len(source.dims)
    drop = {i for i, n in enumerate(source.dims) if n == 1}
    drop = drop if axes is None else {a % rank for a in axes}
    dims = tuple(n for i, n in enumerate(source.dims) if i not in drop)
    return _like(source, dims, lambda a: a.reshape(dims))


def _transpose(node: Node, source: Constant, _second: Constant | None) -> Constant:
    order = attributes(node.proto).get("perm") or tuple(reversed(range(len(source.dims))))
    dims = tuple(source.dims[i] for i in order)
    return _like(source, dims, lambda a: a.transpose(order))


_RULES: dict[str, Callable[[Node, Constant, Constant | None], Constant | None]] = {
    "Cast": _cast,
    "Constant": _identity,
    "ConstantOfShape": _constant_of_shape,
    "Identity": _identity,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}

CONSTANT_OPS = tuple(_RULES)
"""Operators whose results are constant where their inputs are."""
