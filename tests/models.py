"""Tiny ONNX models built in code, for tests that need a model but not a real one.

Weights are drawn from a fixed seed: a builder called twice with the same arguments gives the same
bytes. `save` writes a model to a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Shape = "Sequence[int | str]"

OPSET = 17
IR_VERSION = 8


def model_of(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
    weights: dict[str, np.ndarray] | None = None,
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    weights_as_inputs: bool = False,
) -> onnx.ModelProto:
    """A model of fp32 inputs and outputs; `weights_as_inputs` lists weights as IR 3 wants them."""
    weights = weights or {}

    def values(shapes: dict[str, Shape]) -> list[onnx.ValueInfoProto]:
        return [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in shapes.items()
        ]

    graph_inputs = values(inputs)
    if weights_as_inputs:
        graph_inputs += [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(w.dtype), w.shape)
            for n, w in weights.items()
        ]
    graph = helper.make_graph(
        list(nodes),
        "tiny",
        graph_inputs,
        values(outputs),
        [numpy_helper.from_array(w, n) for n, w in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(
        graph, opset_imports=opsets, ir_version=ir_version, producer_name="tests"
    )


def random_weight(*shape: int, seed: int = 0) -> np.ndarray:
    """Weights in fp32 of mean 0 and deviation 1/sqrt(fan-in): a chain's values stay near 1."""
    fan_in = max(1, int(np.prod(shape[1:])))
    values = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(fan_in)
    return values.astype(np.float32)


def conv_relu(
    *,
    shape: Shape = (1, 3, 16, 16),
    out_channels: int = 8,
    kernel: int = 3,
    bias: bool = True,
    activation: str | None = "Relu",
    input_name: str = "x",
    conv_name: str = "conv0",
    activation_name: str = "relu0",
    opset: int = OPSET,
    ir_version: int = IR_VERSION,
    weights_as_inputs: bool = False,
) -> onnx.ModelProto:
    """One convolution of an odd kernel that keeps height and width, then an activation or none."""
    weights = {"w0": random_weight(out_channels, int(shape[1]), kernel, kernel)}
    if bias:
        weights["b0"] = random_weight(out_channels, seed=1)
    last = "conv0_out" if activation else "y"
    pads = [kernel // 2] * 4
    conv_inputs = [input_name, *weights]
    nodes = [helper.make_node("Conv", conv_inputs, [last], name=conv_name, pads=pads)]
    if activation:
        nodes.append(helper.make_node(activation, [last], ["y"], name=activation_name))
    return model_of(
        nodes,
        inputs={input_name: shape},
        outputs={"y": (shape[0], out_channels, *shape[2:])},
        weights=weights,
        opset=opset,
        ir_version=ir_version,
        weights_as_inputs=weights_as_inputs,
    )


def conv_chain(
    length: int, *, channels: int = 16, shape: Shape = (1, 16, 32, 32)
) -> onnx.ModelProto:
    """`length` times Conv and Relu (conv0, relu0, conv1, ...); `shape` has `channels` channels."""
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {}
    value = "x"
    for i in range(length):
        weights[f"w{i}"] = random_weight(channels, channels, 3, 3, seed=i)
        out = "y" if i == length - 1 else f"relu{i}_out"
        mid = f"conv{i}_out"
        nodes += [
            helper.make_node("Conv", [value, f"w{i}"], [mid], name=f"conv{i}", pads=[1] * 4),
            helper.make_node("Relu", [mid], [out], name=f"relu{i}"),
        ]
        value = out
    return model_of(nodes, inputs={"x": shape}, outputs={"y": shape}, weights=weights)


def matmul(*, rows: int | str = 4, inner: int = 8, columns: int = 16) -> onnx.ModelProto:
    """x [rows, inner] times a constant [inner, columns]: what SM75 refuses in fp32."""
    node = helper.make_node("MatMul", ["x", "w0"], ["y"], name="matmul0")
    return model_of(
        [node],
        inputs={"x": (rows, inner)},
        outputs={"y": (rows, columns)},
        weights={"w0": random_weight(inner, columns)},
    )


def add(*, shape: Shape = (1, 3, 8, 8)) -> onnx.ModelProto:
    """Two inputs, a and b, of one shape, and their sum: the smallest model with two inputs."""
    node = helper.make_node("Add", ["a", "b"], ["y"], name="add0")
    return model_of([node], inputs={"a": shape, "b": shape}, outputs={"y": shape})


def save(model: onnx.ModelProto, path: Path) -> Path:
    """Writes the model and returns the path."""
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path
