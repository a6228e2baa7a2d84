"""Values of the small integer tensors that a model computes from shapes.

ONNX's data propagation stops at a Cast to int32 and at some forms of Slice and Concat, which
Paddle's exporter writes before each Reshape. This computes them, so that inference can go on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper, numpy_helper

from trtplug.model.graph import attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import onnx

    from trtplug.tensor import Sizes

    Value = np.ndarray[Any, np.dtype[Any]]
    Rule = Callable[[list[Any], dict[str, Any]], Value | None]

LARGEST_VALUE = 64
"""Elements. Shapes, axes and bounds are far shorter; what is longer is data."""


def shape_values(
    nodes: Sequence[onnx.NodeProto],
    initializers: Sequence[onnx.TensorProto],
    dims: Mapping[str, Sizes],
) -> dict[str, Value]:
    """Tensor name -> value, of all node outputs that follow from constants and the sizes given."""
    known = {t.name: v for t in initializers if (v := _value_of(t)) is not None}
    computed: dict[str, Value] = {}
    for node in nodes:
        rule = _RULES.get(node.op_type)
        if rule is None or node.domain not in ("", "ai.onnx") or len(node.output) != 1:
            continue
        value = _evaluate(node, rule, known, dims)
        if value is not None and value.size <= LARGEST_VALUE:
            known[node.output[0]] = computed[node.output[0]] = value
    return computed


def _value_of(tensor: onnx.TensorProto) -> Value | None:
    """Value of a short tensor; None where it is long, or where its data do not fit it."""
    if tensor.external_data or not 0 <= math.prod(tensor.dims) <= LARGEST_VALUE:
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _evaluate(
    node: onnx.NodeProto, rule: Rule, known: Mapping[str, Value], dims: Mapping[str, Sizes]
) -> Value | None:
    given = attributes(node)
    if node.op_type == "Shape":
        size = dims.get(node.input[0])
        found = None if size is None else size[given.get("start", 0) : given.get("end", len(size))]
        return None if found is None else np.asarray(found, np.int64)
    values = [known.get(name) if name else None for name in node.input]
    if any(v is None and name for v, name in zip(values, node.input, strict=True)):
        return None
    try:
        with np.errstate(all="ignore"):
            return rule(values, given)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError):
        # Operands that contradict each other: the value stays unknown, inference will complain.
        return None


def _constant(_: list[Any], given: dict[str, Any]) -> Value | None:
    tensor = given.get("value")
    if tensor is not None:
        return _value_of(tensor)
    for name, dtype in (("value_int", np.int64), ("value_ints", np.int64)):
        if name in given:
            return np.asarray(given[name], dtype)
    return None


def _axes(v: list[Any], given: dict[str, Any]) -> tuple[int, ...] | None:
    axes = given.get("axes") if len(v) < 2 or v[1] is None else v[1].reshape(-1)
    return None if axes is None else tuple(int(a) for a in axes)


def _slice(v: list[Any], given: dict[str, Any]) -> Value:
    v = v + [None] * (5 - len(v))
    starts: Sequence[int] = given["starts"] if v[1] is None else v[1]
    ends: Sequence[int] = given["ends"] if v[2] is None else v[2]
    axes: Sequence[int] = given.get("axes", range(len(starts))) if v[3] is None else v[3]
    steps = [1] * len(starts) if v[4] is None else v[4]
    index = [slice(None)] * v[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        index[int(axis)] = slice(int(start), _end(int(end), int(step)), int(step))
    return np.asarray(v[0][tuple(index)])


def _end(end: int, step: int) -> int | None:
    """ONNX writes "to the very start" of a backward slice as a number below any index."""
    return None if step < 0 and end < -(2**31) + 1 else end


def _div(v: list[Any], _: dict[str, Any]) -> Value:
    if np.issubdtype(v[0].dtype, np.integer):
        return np.asarray(np.trunc(v[0] / v[1]).astype(v[0].dtype))
    return np.asarray(v[0] / v[1])


_RULES: dict[str, Rule] = {
    "Add": lambda v, _: np.asarray(v[0] + v[1]),
    "Cast": lambda v, g: np.asarray(v[0]).astype(helper.tensor_dtype_to_np_dtype(g["to"])),
    "Ceil": lambda v, _: np.ceil(v[0]),
    "Concat": lambda v, g: np.concatenate(v, axis=g["axis"]),
    "Constant": _constant,
    "Div": _div,
    "Floor": lambda v, _: np.floor(v[0]),
    "Gather": lambda v, g: np.take(v[0], v[1], axis=g.get("axis", 0)),
    "Identity": lambda v, _: v[0],
    "Max": lambda v, _: np.asarray(np.maximum.reduce(v)),
    "Min": lambda v, _: np.asarray(np.minimum.reduce(v)),
    "Mul": lambda v, _: np.asarray(v[0] * v[1]),
    "ReduceProd": lambda v, _: np.asarray([v[0].prod()], v[0].dtype) if len(v) == 1 else None,
    "Reshape": lambda v, _: v[0].reshape(v[1]),
    "Shape": lambda _v, _g: None,
    "Slice": _slice,
    "Squeeze": lambda v, g: np.squeeze(v[0], _axes(v, g)),
    "Sub": lambda v, _: np.asarray(v[0] - v[1]),
    "Unsqueeze": lambda v, g: np.expand_dims(v[0], _axes(v, g) or 0),
}
