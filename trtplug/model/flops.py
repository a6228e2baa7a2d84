"""Floating-point operations of a node, by formulas stated here.

Conventions: a multiply-add counts 2. Convolution: 2 for each tap of each output, plus 1 for a
bias. Gemm and MatMul: 2 * M * N * K. BatchNormalization: 2 an element (scale and shift, folded).
Element-wise arithmetic, comparison and Relu, Clip, Abs, Neg: 1 an element of the output for each
operand beyond the first, at least 1. Transcendental functions and divisions count 1 like the rest
of them: what they cost is the machine's affair. Compound activations count their written steps
(sigmoid 4, SiLU 5, HardSwish 5, Gelu 8). Pooling: 1 a tap. Reductions: 1 an input element.
Softmax: 5 an element; normalisations: 8. Moving data costs none. What is not listed is unknown:
None, not 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from trtplug.model.graph import attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from trtplug.model.shapes import ShapeTable

Unit = Literal["matrix", "vector", "none"]

_MOVES = frozenset((
    "Cast", "CastLike", "Compress", "Concat", "Constant", "ConstantOfShape", "DepthToSpace",
    "Dropout", "Expand", "EyeLike", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "NonZero", "OneHot", "Pad", "Range", "Reshape", "ReverseSequence", "Scatter",
    "ScatterElements", "ScatterND", "Shape", "Size", "Slice", "SpaceToDepth", "Split",
    "Squeeze", "Tile", "Transpose", "Unsqueeze", "Upsample",
))  # fmt: skip

_OPERATIONS_PER_OUTPUT: dict[int, tuple[str, ...]] = {
    1: (
        "Abs", "Add", "And", "BitShift", "Ceil", "Clip", "Cos", "Div", "Equal", "Erf",
        "Exp", "Floor", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Log", "Mod",
        "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu", "Round", "Sign",
        "Sin", "Sqrt", "Sub", "Tan", "Where", "Xor",
    ),
    2: (
        "BatchNormalization", "DequantizeLinear", "LeakyRelu", "QuantizeLinear",
        "ThresholdedRelu",
    ),
    3: (
        "Celu", "Elu", "HardSigmoid", "Selu", "Softplus", "Softsign",
    ),
    4: (
        "Sigmoid", "Tanh",
    ),
    5: (
        "HardSwish", "LogSoftmax", "Softmax", "Swish",
    ),
    8: (
        "Gelu", "GroupNormalization", "InstanceNormalization", "LRN", "LayerNormalization",
        "Mish",
    ),
}  # fmt: skip

_PER_OUTPUT = {op: n for n, ops in _OPERATIONS_PER_OUTPUT.items() for op in ops}

_PER_INPUT = frozenset((
    "ArgMax", "ArgMin", "CumSum", "GlobalAveragePool", "GlobalMaxPool", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "TopK",
))  # fmt: skip
_TWICE_PER_INPUT = frozenset((
    "GlobalLpPool", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare",
))  # fmt: skip

_MATRIX = frozenset((
    "Conv", "ConvInteger", "ConvTranspose", "Einsum", "Gemm", "MatMul", "MatMulInteger",
    "QLinearConv",
))  # fmt: skip


def unit_of(node: onnx.NodeProto) -> Unit:
    """Which part of a GPU a node's arithmetic runs on: matrix units, vector units, or neither."""
    if node.domain in ("", "ai.onnx") and node.op_type in _MATRIX:
        return "matrix"
    return "none" if node.op_type in _MOVES else "vector"


def node_flops(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    """Floating-point operations of one run; None where the operator or a size is unknown."""
    if node.domain not in ("", "ai.onnx") or not node.output:
        return None
    op = node.op_type
    if op in _MOVES:
        return 0
    if op in _FORMULAS:
        return _FORMULAS[op](node, shapes)
    if op in _PER_OUTPUT:
        return _times(shapes.elements(node.output[0]), _PER_OUTPUT[op])
    if op in ("Max", "Mean", "Min", "Sum"):
        return _times(shapes.elements(node.output[0]), max(1, len(node.input) - 1))
    if op in _PER_INPUT or op in _TWICE_PER_INPUT:
        return _times(shapes.elements(node.input[0]), 2 if op in _TWICE_PER_INPUT else 1)
    return None


def _times(elements: int | None, each: int) -> int | None:
    return None if elements is None else elements * each


def _conv(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    weight, outputs = shapes.dims(node.input[1]), shapes.elements(node.output[0])
    if weight is None or outputs is None:
        return None
    biased = len(node.input) > 2 and bool(node.input[2])
    return outputs * (2 * math.prod(weight[1:]) + biased)


def _conv_transpose(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    weight, inputs = shapes.dims(node.input[1]), shapes.elements(node.input[0])
    if weight is None or inputs is None:
        return None
    biased = len(node.input) > 2 and bool(node.input[2])
    outputs = shapes.elements(node.output[0])
    if biased and outputs is None:
        return None
    return inputs * 2 * math.prod(weight[1:]) + (outputs or 0) * biased


def _gemm(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    first, outputs = shapes.dims(node.input[0]), shapes.elements(node.output[0])
    if first is None or outputs is None or len(first) != 2:
        return None
    depth = first[0 if attributes(node).get("transA") else 1]
    biased = len(node.input) > 2 and bool(node.input[2])
    return outputs * (2 * depth + biased)


def _matmul(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    first, outputs = shapes.dims(node.input[0]), shapes.elements(node.output[0])
    return None if not first or outputs is None else 2 * outputs * first[-1]


def _pool(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    kernel = attributes(node).get("kernel_shape") or ()
    return _times(shapes.elements(node.output[0]), math.prod(kernel))


def _resize(node: onnx.NodeProto, shapes: ShapeTable) -> int | None:
    """Nearest moves data; linear blends 2 values an axis that changes, cubic 4."""
    mode = attributes(node).get("mode", "nearest")
    before, after = shapes.dims(node.input[0]), shapes.dims(node.output[0])
    if mode == "nearest":
        return 0
    if before is None or after is None or len(before) != len(after):
        return None
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    points = 2 if mode == "linear" else 4
    blends: int = (points**changed - 1) // (points - 1)
    return math.prod(after) * (2 * points - 1) * blends


_FORMULAS: dict[str, Callable[[onnx.NodeProto, ShapeTable], int | None]] = {
    "AveragePool": _pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "LpPool": _pool,
    "MatMul": _matmul,
    "MaxPool": _pool,
    "Resize": _resize,
}
