"""`trtplug::CBRPair` version 1: a depthwise convolution and the pointwise one that reads it.

    m = act(conv(x, w) + b)                one filter for each channel
    y = CBR(m, pointwise_w, pointwise_b)   1x1, one group; with its activation and residual

x [N, C, H, W], w [C, 1, kH, kW], b [C], pointwise_w [M, C, 1, 1], pointwise_b [M], residual and
y [N, M, H', W'], all of one type: float, float16 or bfloat16. It is what two CBR nodes in a row
compute; `m` is never a tensor of the graph. Knows no TensorRT.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import AttributeProto, FunctionProto, NodeProto, helper

from trtplug.ops import cbr, cbr_function
from trtplug.ops.cbr import DOMAIN, VERSION, CbrAttributes, attribute_value, plugin_node
from trtplug.ops.cbr_function import Body, add_cbr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.ops.cbr import Array
    from trtplug.tensor import Shape

OP_TYPE = "CBRPair"

_FIRST = (
    "kernel_shape", "strides", "pads", "dilations", "group", "activation", "alpha", "beta", "min",
    "max",
)  # fmt: skip
"""Attributes of the depthwise convolution, by their name in a CBR."""

_SECOND = ("activation", "alpha", "beta", "min", "max")
"""Those of the pointwise one; on the node they begin with `pointwise_`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CbrPairAttributes:
    """The two convolutions of a pair, each as a CBR of its own."""

    depthwise: CbrAttributes
    pointwise: CbrAttributes

    def __post_init__(self) -> None:
        """Refuses what no pair can be.

        Raises:
            ValueError: what does not fit.
        """
        if self.depthwise.residual != "none":
            raise ValueError("a pair adds no residual between its convolutions")
        if not is_pointwise(self.pointwise) or self.pointwise.dilations != (1, 1):
            raise ValueError(f"{self.pointwise} is not 1x1 with one group, stride 1 and no padding")


def is_pointwise(given: CbrAttributes) -> bool:
    """Whether a CBR takes every pixel by itself, and all channels at once.

    The dilation of a single tap means nothing.
    """
    plain = (given.kernel_shape, given.strides, given.pads, given.group)
    return plain == ((1, 1), (1, 1), (0, 0, 0, 0), 1)


def make_node(
    given: CbrPairAttributes, inputs: Sequence[str], output: str, name: str, overload: str = ""
) -> NodeProto:
    """The ONNX node: x, w, b, pointwise_w, pointwise_b and, where there is one, the residual."""
    residual = given.pointwise.residual
    wanted = 5 + (residual != "none")
    if len(inputs) != wanted:
        raise ValueError(f"{len(inputs)} inputs with residual {residual}; {wanted} wanted")
    return plugin_node(OP_TYPE, inputs, output, name, overload, _attributes(given))


@functools.lru_cache(maxsize=256)
def _attributes(given: CbrPairAttributes) -> tuple[AttributeProto, ...]:
    values = {name: getattr(given.depthwise, name) for name in _FIRST}
    values |= {f"pointwise_{name}": getattr(given.pointwise, name) for name in _SECOND}
    values |= {"residual": given.pointwise.residual}
    # What TensorRT's parser looks a plugin up by.
    values |= {"plugin_namespace": DOMAIN, "plugin_version": str(VERSION)}
    return tuple(helper.make_attribute(name, value) for name, value in values.items())


def attribute_names() -> tuple[str, ...]:
    """Names of a node's attributes, in order."""
    second = (f"pointwise_{name}" for name in _SECOND)
    return (*_FIRST, *second, "residual", "plugin_namespace", "plugin_version")


def read_node(node: NodeProto) -> CbrPairAttributes:
    """The inverse of `make_node`.

    Raises:
        ValueError: the node is no CBRPair, or an attribute is out of its range.
    """
    if (node.domain, node.op_type) != (DOMAIN, OP_TYPE):
        raise ValueError(f"{node.domain}::{node.op_type} is no {DOMAIN}::{OP_TYPE}")
    given = {a.name: attribute_value(a) for a in node.attribute}
    second = {n: given[f"pointwise_{n}"] for n in _SECOND if f"pointwise_{n}" in given}
    return CbrPairAttributes(
        depthwise=CbrAttributes(**{n: given[n] for n in _FIRST if n in given}),
        pointwise=CbrAttributes(
            kernel_shape=(1, 1), residual=given.get("residual", "none"), **second
        ),
    )


def output_shape(
    x: Shape, w: Sequence[int], pointwise_w: Sequence[int], given: CbrPairAttributes
) -> Shape:
    """Shape of y, as `trtplug.ops.cbr.output_shape` has it.

    Raises:
        ValueError: ranks, channels or groups do not fit, or the window is larger than the input.
    """
    if not given.depthwise.group == w[0] == w[1] * w[0]:
        raise ValueError(f"w {list(w)} with group {given.depthwise.group} is not depthwise")
    between = cbr.output_shape(x, w, given.depthwise)
    return cbr.output_shape(between, pointwise_w, given.pointwise)


def reference(
    x: Array,
    weights: tuple[Array, Array],
    biases: tuple[Array, Array],
    residual: Array | None,
    given: CbrPairAttributes,
) -> Array:
    """What the op gives, in float64 throughout; depthwise weights and bias come first."""
    between = cbr.reference(x, weights[0], biases[0], None, given.depthwise)
    return cbr.reference(between, weights[1], biases[1], residual, given.pointwise)


@functools.lru_cache(maxsize=256)
def overload_name(given: CbrPairAttributes, dtype: str) -> str:
    """The whole configuration: the names of both CBRs."""
    both = (given.depthwise, given.pointwise)
    return "__".join(cbr_function.overload_name(one, dtype) for one in both)


def make_function(given: CbrPairAttributes, dtype: str, opset: int) -> FunctionProto:
    """The function for one configuration; arguments as `cbr_function.make_function` has them."""
    body = Body(dtype, opset)
    between = add_cbr(body, given.depthwise, "x", "w", "b")
    add_cbr(body, given.pointwise, between, "pointwise_w", "pointwise_b")
    body.nodes[-1].output[0] = "y"
    residual = ["residual"] if given.pointwise.residual != "none" else []
    function: FunctionProto = helper.make_function(
        DOMAIN,
        OP_TYPE,
        ["x", "w", "b", "pointwise_w", "pointwise_b", *residual],
        ["y"],
        body.nodes,
        [helper.make_opsetid("", opset)],
        list(attribute_names()),
    )
    function.overload = overload_name(given, dtype)
    return function
