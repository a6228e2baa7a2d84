"""The body of a CBR node in standard ONNX operators: a runtime needs nothing of ours.

One overload for each configuration, with every value written out: the activation changes which
nodes there are, which an attribute passed by reference cannot. (TensorRT-RTX's parser loses lists
passed by reference and ignores overloads; it is never shown a CBR node. Enterprise TensorRT takes
the plugin before it looks at the function. ONNX Runtime ignores overloads before 1.27.)
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import FunctionProto, helper, numpy_helper

from trtplug.ops.cbr import DOMAIN, GELU_TANH, OP_TYPE, UNBOUNDED, CbrAttributes
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

FIRST_IR_WITH_OVERLOADS = 10

_EXTRA_ATTRIBUTES = ("plugin_namespace", "plugin_version")


@functools.lru_cache(maxsize=256)
def overload_name(given: CbrAttributes, dtype: str) -> str:
    """A name that says the whole configuration, such as `k3x3_s1x1_p1x1x1x1_d1x1_g1_relu_float`."""
    parts = [
        "k" + _joined(given.kernel_shape),
        "s" + _joined(given.strides),
        "p" + _joined(given.pads),
        "d" + _joined(given.dilations),
        f"g{given.group}",
        given.activation,
    ]
    values = (("a", given.alpha), ("b", given.beta), ("min", given.min), ("max", given.max))
    parts += [f"{name}{value!r}" for name, value in values if abs(value) not in (0.0, UNBOUNDED)]
    if given.activation == "clip":
        parts += [name for name, value in values[2:] if value == 0.0]
    if given.residual != "none":
        parts.append(given.residual)
    return "_".join((*parts, dtype))


def _joined(values: tuple[int, ...]) -> str:
    return "x".join(map(str, values))


def make_function(given: CbrAttributes, dtype: str, opset: int) -> FunctionProto:
    """The function for one configuration.

    Args:
        given: what every node of this overload has for attributes.
        dtype: `float`, `float16` or `bfloat16`: the type of the constants in the body.
        opset: version of the standard operators to write it in, from 7.
    """
    body = Body(dtype, opset)
    add_cbr(body, given, "x", "w", "b")
    body.nodes[-1].output[0] = "y"
    function: FunctionProto = helper.make_function(
        DOMAIN,
        OP_TYPE,
        ["x", "w", "b"] + (["residual"] if given.residual != "none" else []),
        ["y"],
        body.nodes,
        [helper.make_opsetid("", opset)],
        [*(f.name for f in dataclasses.fields(CbrAttributes)), *_EXTRA_ATTRIBUTES],
    )
    function.overload = overload_name(given, dtype)
    return function


def add_cbr(body: Body, given: CbrAttributes, x: str, w: str, b: str) -> str:
    """The nodes of one CBR, its residual under that name; the name of its output."""
    tensor = body.add(
        "Conv",
        [x, w, b],
        kernel_shape=given.kernel_shape,
        strides=given.strides,
        pads=given.pads,
        dilations=given.dilations,
        group=given.group,
    )
    if given.residual == "before_activation":
        tensor = body.add("Add", [tensor, "residual"])
    tensor = _ACTIVATE[given.activation](body, tensor, given)
    if given.residual == "after_activation":
        tensor = body.add("Add", [tensor, "residual"])
    return tensor


class Body:
    """The nodes of a function under construction."""

    def __init__(self, dtype: str, opset: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.opset = opset
        self._dtype = helper.tensor_dtype_to_np_dtype(element_type(dtype).onnx)

    def add(self, op_type: str, inputs: list[str], **given: Any) -> str:  # noqa: ANN401
        """A node; the name of its output."""
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [output], **given))
        return output

    def constant(self, value: float) -> str:
        """A scalar of the op's type."""
        tensor = numpy_helper.from_array(np.asarray(value).astype(self._dtype))
        return self.add("Constant", [], value=tensor)


def _none(_body: Body, x: str, _given: CbrAttributes) -> str:
    return x


def _unary(op_type: str) -> Callable[[Body, str, CbrAttributes], str]:
    return lambda body, x, _given: body.add(op_type, [x])


def _clip(body: Body, x: str, given: CbrAttributes) -> str:
    return _bounded(body, x, given.min, given.max)


def _bounded(body: Body, x: str, least: float, most: float) -> str:
    if body.opset < 11:
        return body.add("Clip", [x], min=least, max=most)
    low = body.constant(least) if least > -UNBOUNDED else ""
    high = body.constant(most) if most < UNBOUNDED else ""
    return body.add("Clip", [x, low, high] if high else [x, low])


def _leaky_relu(body: Body, x: str, given: CbrAttributes) -> str:
    return body.add("LeakyRelu", [x], alpha=given.alpha)


def _silu(body: Body, x: str, _given: CbrAttributes) -> str:
    return body.add("Mul", [x, body.add("Sigmoid", [x])])


def _hard_sigmoid(body: Body, x: str, given: CbrAttributes) -> str:
    return body.add("HardSigmoid", [x], alpha=given.alpha, beta=given.beta)


def _hard_swish(body: Body, x: str, given: CbrAttributes) -> str:
    if (given.alpha, given.beta) == (float(np.float32(1 / 6)), 0.5):
        # 1/6 is no float32: dividing by 6 is nearer to what all exporters write.
        gate = _bounded(body, body.add("Add", [x, body.constant(3.0)]), 0.0, 6.0)
        return body.add("Div", [body.add("Mul", [x, gate]), body.constant(6.0)])
    return body.add("Mul", [x, _hard_sigmoid(body, x, given)])


def _mish(body: Body, x: str, _given: CbrAttributes) -> str:
    return body.add("Mul", [x, body.add("Tanh", [body.add("Softplus", [x])])])


def _gelu(body: Body, x: str, given: CbrAttributes) -> str:
    if given.alpha == GELU_TANH:
        cube = body.add("Mul", [x, body.add("Mul", [x, x])])
        inner = body.add("Add", [x, body.add("Mul", [cube, body.constant(0.044715)])])
        gate = body.add("Tanh", [body.add("Mul", [inner, body.constant(math.sqrt(2 / math.pi))])])
    else:
        gate = body.add("Erf", [body.add("Div", [x, body.constant(math.sqrt(2))])])
    one = body.add("Add", [gate, body.constant(1.0)])
    half = body.add("Mul", [x, body.constant(0.5)])
    return body.add("Mul", [half, one])


_ACTIVATE: dict[str, Callable[[Body, str, CbrAttributes], str]] = {
    "none": _none,
    "relu": _unary("Relu"),
    "clip": _clip,
    "leaky_relu": _leaky_relu,
    "silu": _silu,
    "hard_swish": _hard_swish,
    "hard_sigmoid": _hard_sigmoid,
    "sigmoid": _unary("Sigmoid"),
    "tanh": _unary("Tanh"),
    "gelu": _gelu,
    "mish": _mish,
}
