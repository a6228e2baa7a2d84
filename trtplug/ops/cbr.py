"""`trtplug::CBR` version 1: convolution, bias, residual and activation in one op.

    y = act(conv(x, w) + b + residual)     residual before_activation
    y = act(conv(x, w) + b) + residual     residual after_activation

x [N, C, H, W], w [M, C / group, kH, kW], b [M], residual and y [N, M, H', W'], all of one type:
float, float16 or bfloat16. The one place that says what the op is: attributes, output shape, the
ONNX node, and a reference in float64. Knows no TensorRT.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from onnx import AttributeProto, NodeProto, helper

from trtplug.tensor import window_positions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtplug.tensor import Dim, Shape

    Array = np.ndarray[Any, np.dtype[Any]]

DOMAIN = "trtplug"
OP_TYPE = "CBR"
VERSION = 1

ActivationKind = Literal[
    "none",
    "relu",
    "clip",
    "leaky_relu",
    "silu",
    "hard_swish",
    "hard_sigmoid",
    "sigmoid",
    "tanh",
    "gelu",
    "mish",
]
ResidualPosition = Literal["none", "before_activation", "after_activation"]

ACTIVATIONS: tuple[str, ...] = get_args(ActivationKind)
RESIDUALS: tuple[str, ...] = get_args(ResidualPosition)

UNBOUNDED = float(np.finfo(np.float32).max)
"""`min` and `max` of a side without bound, as ONNX's Clip has it."""

GELU_TANH = 1.0
"""`alpha` of a GELU by its tanh approximation; 0 is the exact one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CbrAttributes:
    """Attributes of a CBR node; names and order are those on the node."""

    kernel_shape: tuple[int, int]
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Top, left, bottom, right."""
    dilations: tuple[int, int] = (1, 1)
    group: int = 1
    activation: str = "none"
    alpha: float = 0.0
    """Slope below 0 of leaky_relu; slope of hard_sigmoid and hard_swish; 1 for gelu by tanh."""
    beta: float = 0.0
    """Offset of hard_sigmoid and hard_swish: `clip(alpha * x + beta, 0, 1)`."""
    min: float = -UNBOUNDED
    """Lower bound of clip."""
    max: float = UNBOUNDED
    """Upper bound of clip."""
    residual: str = "none"

    def reach(self, axis: int) -> int:
        """Padding of a spatial axis less the window's extent, as `window_positions` takes it."""
        extent = self.dilations[axis] * (self.kernel_shape[axis] - 1) + 1
        return self.pads[axis] + self.pads[axis + 2] - extent

    def __post_init__(self) -> None:
        """Refuses what no CBR can be.

        Raises:
            ValueError: the attribute and its value.
        """
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation {self.activation!r} is none of {', '.join(ACTIVATIONS)}")
        if self.residual not in RESIDUALS:
            raise ValueError(f"residual {self.residual!r} is none of {', '.join(RESIDUALS)}")
        for name, length, least in _LISTS:
            value = getattr(self, name)
            if len(value) != length or min(value) < least:
                raise ValueError(
                    f"{name} {list(value)}: {length} values of at least {least} wanted"
                )
        if self.group < 1:
            raise ValueError(f"group {self.group} is below 1")


_LISTS = (("kernel_shape", 2, 1), ("strides", 2, 1), ("pads", 4, 0), ("dilations", 2, 1))


def make_node(
    given: CbrAttributes, inputs: Sequence[str], output: str, name: str, overload: str = ""
) -> NodeProto:
    """The ONNX node: x, w, b and, where there is one, the residual.

    `plugin_namespace` and `plugin_version` are what TensorRT's parser looks a plugin up by.
    """
    wanted = 3 + (given.residual != "none")
    if len(inputs) != wanted:
        raise ValueError(f"{len(inputs)} inputs with residual {given.residual}; {wanted} wanted")
    return plugin_node(OP_TYPE, inputs, output, name, overload, _attributes(given))


def plugin_node(
    op_type: str,
    inputs: Sequence[str],
    output: str,
    name: str,
    overload: str,
    attributes: Sequence[AttributeProto],
) -> NodeProto:
    """A node of our domain, with one output."""
    node = NodeProto(op_type=op_type, domain=DOMAIN, name=name, overload=overload)
    node.input.extend(inputs)
    node.output.append(output)
    node.attribute.extend(attributes)
    return node


@functools.lru_cache(maxsize=256)
def _attributes(given: CbrAttributes) -> tuple[AttributeProto, ...]:
    """Made once for each configuration: a model has few, and a thousand nodes."""
    values = {f.name: getattr(given, f.name) for f in dataclasses.fields(given)}
    values |= {"plugin_namespace": DOMAIN, "plugin_version": str(VERSION)}
    return tuple(helper.make_attribute(name, value) for name, value in values.items())


def read_node(node: NodeProto) -> CbrAttributes:
    """The inverse of `make_node`.

    Raises:
        ValueError: the node is no CBR, or an attribute is out of its range.
    """
    if (node.domain, node.op_type) != (DOMAIN, OP_TYPE):
        raise ValueError(f"{node.domain}::{node.op_type} is no {DOMAIN}::{OP_TYPE}")
    fields = {f.name for f in dataclasses.fields(CbrAttributes)}
    given = {a.name: attribute_value(a) for a in node.attribute}
    return CbrAttributes(**{k: v for k, v in given.items() if k in fields})


def attribute_value(attribute: AttributeProto) -> Any:  # noqa: ANN401
    """An attribute's value as the dataclass holds it."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return tuple(value) if isinstance(value, list) else value


def output_shape(x: Shape, w: Sequence[int], given: CbrAttributes) -> Shape:
    """Shape of y. A symbolic size is kept where it stays the same, and is None where it changes.

    Raises:
        ValueError: ranks, channels or groups do not fit, or the window is larger than the input.
    """
    if len(x) != 4 or len(w) != 4:
        raise ValueError(f"x {list(x)} and w {list(w)} must have 4 axes each")
    if tuple(w[2:]) != given.kernel_shape:
        raise ValueError(f"kernel_shape {list(given.kernel_shape)} contradicts w {list(w)}")
    if w[0] % given.group:
        raise ValueError(f"group {given.group} does not divide {w[0]} output channels")
    if isinstance(x[1], int) and x[1] != w[1] * given.group:
        raise ValueError(f"x has {x[1]} channels; w {list(w)} with group {given.group} needs "
                         f"{w[1] * given.group}")  # fmt: skip
    return (x[0], w[0], _slide(x[2], 0, given), _slide(x[3], 1, given))


def _slide(size: Dim, axis: int, given: CbrAttributes) -> Dim:
    reach = given.reach(axis)
    if not isinstance(size, int):
        return size if reach == -1 and given.strides[axis] == 1 else None
    if size + reach < 0:
        padding = given.pads[axis] + given.pads[axis + 2]
        raise ValueError(
            f"a window of {padding - reach} does not fit {size} pixels padded by {padding}"
        )
    return window_positions(size, reach, given.strides[axis])


def reference(x: Array, w: Array, b: Array, residual: Array | None, given: CbrAttributes) -> Array:
    """What the op gives, in float64 throughout."""
    y = _convolve(x.astype(np.float64), w.astype(np.float64), given)
    y += b.astype(np.float64).reshape(1, -1, 1, 1)
    if residual is not None and given.residual == "before_activation":
        y += residual.astype(np.float64)
    y = activate(y, given)
    if residual is not None and given.residual == "after_activation":
        y = y + residual.astype(np.float64)
    return y


def _convolve(x: Array, w: Array, given: CbrAttributes) -> Array:
    """Sum over the taps of the kernel: few large steps, one for each tap."""
    shape = output_shape(x.shape, w.shape, given)
    top, left, bottom, right = given.pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    batch, channels, rows, columns = (int(n or 0) for n in shape)
    groups = given.group
    grouped = padded.reshape(batch, groups, -1, *padded.shape[2:])
    weight = w.reshape(groups, channels // groups, *w.shape[1:])
    y = np.zeros((batch, groups, channels // groups, rows, columns))
    for i in range(given.kernel_shape[0]):
        for j in range(given.kernel_shape[1]):
            down, across = i * given.dilations[0], j * given.dilations[1]
            taps = grouped[
                ...,
                down : down + given.strides[0] * (rows - 1) + 1 : given.strides[0],
                across : across + given.strides[1] * (columns - 1) + 1 : given.strides[1],
            ]
            y += np.einsum("ngchw,gmc->ngmhw", taps, weight[..., i, j], optimize=True)
    return y.reshape(batch, channels, rows, columns)


def activate(x: Array, given: CbrAttributes) -> Array:
    """The activation alone, in float64."""
    with np.errstate(over="ignore"):
        return _ACTIVATE[given.activation](x, given)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _hard_sigmoid(x: Array, given: CbrAttributes) -> Array:
    return np.clip(given.alpha * x + given.beta, 0, 1)


def _gelu(x: Array, given: CbrAttributes) -> Array:
    if given.alpha == GELU_TANH:
        gate = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    else:
        gate = np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2))
    return np.asarray(0.5 * x * (1 + gate))


_ACTIVATE: dict[str, Callable[[Array, CbrAttributes], Array]] = {
    "none": lambda x, _: x,
    "relu": lambda x, _: np.maximum(x, 0),
    # As ONNX has it: where the bounds cross, the upper one wins.
    "clip": lambda x, a: np.minimum(np.maximum(x, a.min), a.max),
    "leaky_relu": lambda x, a: np.where(x < 0, a.alpha * x, x),
    "silu": lambda x, _: x * _sigmoid(x),
    "hard_swish": lambda x, a: x * _hard_sigmoid(x, a),
    "hard_sigmoid": _hard_sigmoid,
    "sigmoid": lambda x, _: _sigmoid(x),
    "tanh": lambda x, _: np.tanh(x),
    "gelu": _gelu,
    "mish": lambda x, _: x * np.tanh(np.logaddexp(0, x)),
}
