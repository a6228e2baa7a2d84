"""Folds scales and shifts into a convolution's weight and bias: in float64, rounded once.

With x the input, s and t the scale and shift before, u and v those after, for output channel m:

    y[m] = u[m] * (sum over c, kernel of w[m, c] * (s[c] * x[c] + t[c]) + b[m]) + v[m]

so the folded weight is `u[m] * w[m, c] * s[c]` and the folded bias
`u[m] * (b[m] + sum over c, kernel of w[m, c] * t[c]) + v[m]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

from trtplug.model.graph import Graph, Node, attributes
from trtplug.rewrite.site import NearMissReason

if TYPE_CHECKING:
    from trtplug.model.constants import Constant, Constants
    from trtplug.model.convolution import Convolution

    Vector = np.ndarray[Any, np.dtype[np.float64]]
    Array = np.ndarray[Any, np.dtype[Any]]


BINARY = ("Add", "Div", "Mul", "Sub", "Sum")


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """`y = x * scale + shift`, broadcast over channels."""

    scale: Vector
    shift: Vector

    def then(self, later: Affine) -> Affine:
        """This one first, `later` on its result."""
        with np.errstate(over="ignore", invalid="ignore"):
            return Affine(self.scale * later.scale, self.shift * later.scale + later.shift)

    @property
    def is_finite(self) -> bool:
        """Whether all values are numbers."""
        return bool(np.isfinite(self.scale).all() and np.isfinite(self.shift).all())


IDENTITY = Affine(np.ones(1), np.zeros(1))


def read_affine(
    node: Node, data: str, channels: int, graph: Graph, constants: Constants, opset: int
) -> Affine | NearMissReason | None:
    """What `node` does to its input `data` [N, channels, H, W].

    Returns:
        The scale and shift; or why it is none although its kind often is; or None where its kind
        never is (another operator, or two operands that both depend on what the model is fed).
    """
    if node.is_op("Neg"):
        return Affine(-np.ones(1), np.zeros(1))
    if node.is_op("BatchNormalization") and node.input(0) == data:
        return _batch_normalization(node, channels, graph, constants, opset)
    if node.is_op(*BINARY) and len(node.inputs) == 2:
        return _binary(node, data, channels, constants)
    return None


def _batch_normalization(
    node: Node, channels: int, graph: Graph, constants: Constants, opset: int
) -> Affine | NearMissReason:
    given = attributes(node.proto)
    extra = [name for name in node.outputs[1:] if name]
    extra_read = any(graph.consumers.get(n) or n in graph.outputs for n in extra)
    if given.get("training_mode") or extra_read:
        return NearMissReason.BATCH_STATISTICS
    if opset < 9 and not given.get("spatial", 1):
        return NearMissReason.PER_CHANNEL
    found = [constants.get(node.input(slot)) for slot in range(1, 5)]
    parameters = [c for c in found if c is not None]
    if len(parameters) < 4:
        return NearMissReason.DYNAMIC_PARAMETER
    if any(c.overridable for c in parameters):
        return NearMissReason.OVERRIDABLE
    if any(c.elements != channels for c in parameters):
        return NearMissReason.PER_CHANNEL
    scale, shift, mean, variance = (_vector(c) for c in parameters)
    # The standard's default; a file holds it as float32.
    epsilon = float(given.get("epsilon", np.float32(1e-5)))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        return Affine(factor, shift - mean * factor)


def _binary(
    node: Node, data: str, channels: int, constants: Constants
) -> Affine | NearMissReason | None:
    if node.inputs[0] == node.inputs[1]:
        return None
    first = node.inputs[0] == data
    constant = constants.get(node.inputs[1 if first else 0])
    if constant is None:
        return None
    if constant.overridable:
        return NearMissReason.OVERRIDABLE
    if not _is_per_channel(constant.dims, channels):
        return NearMissReason.PER_CHANNEL
    value = _vector(constant)
    one, zero = np.ones(1), np.zeros(1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        match node.op_type, first:
            case (("Add" | "Sum"), _):
                return Affine(one, value)
            case "Mul", _:
                return Affine(value, zero)
            case "Sub", True:
                return Affine(one, -value)
            case "Sub", False:
                return Affine(-one, value)
            case "Div", True:
                return Affine(1.0 / value, zero)
            case _:
                return None


def _is_per_channel(dims: tuple[int, ...], channels: int) -> bool:
    """Whether a constant of these dimensions meets [N, channels, H, W] as one value a channel."""
    if len(dims) > 4:
        return False
    aligned = (1,) * (4 - len(dims)) + dims
    return aligned in ((1, channels, 1, 1), (1, 1, 1, 1))


def _vector(constant: Constant) -> Vector:
    return constant.read().reshape(-1).astype(np.float64)


def fold_weight(weight: Constant, geometry: Convolution, before: Affine, after: Affine) -> Array:
    """The weight [M, C / group, kH, kW] with both scales in it, in its own type."""
    stored = weight.read()
    scale = np.broadcast_to(after.scale, geometry.channels).reshape(-1, 1, 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        folded = stored.astype(np.float64)
        folded *= _per_weight(before.scale, geometry) * scale
        return folded.astype(stored.dtype)


def fold_bias(
    weight: Constant,
    bias: Constant | None,
    geometry: Convolution,
    before: Affine,
    after: Affine,
    dtype: np.dtype[Any] | None = None,
) -> Array:
    """The bias [M] with both steps in it.

    In `dtype`, or in the type of the bias, or of the weight where there is none.
    """
    total = _input_shift(weight, geometry, before)
    dtype = dtype or helper.tensor_dtype_to_np_dtype((bias or weight).elem_type)
    if bias is not None:
        total = total + bias.read().astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        result: Array = (total * after.scale + after.shift).astype(dtype)
    return np.broadcast_to(result, geometry.channels)


def _per_weight(channel_values: Array, geometry: Convolution) -> Array:
    """Values of the input channels [C] (or one for all), laid out to meet the weight."""
    groups, per_group = geometry.group, geometry.channels_per_group
    grouped = np.broadcast_to(channel_values, groups * per_group).reshape(groups, per_group)
    return np.repeat(grouped, geometry.channels // groups, axis=0).reshape(-1, per_group, 1, 1)


def _input_shift(weight: Constant, geometry: Convolution, before: Affine) -> Array:
    """What a shift of the input adds to each output channel."""
    if not np.any(before.shift):
        return np.zeros(geometry.channels)
    taps: Array = weight.read().astype(np.float64).sum(axis=(2, 3))
    total: Array = (taps * _per_weight(before.shift, geometry)[:, :, 0, 0]).sum(axis=1)
    return total
