"""Models that the flows build: small, with random weights, so that numbers can be compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from tests.models import conv_chain, conv_relu, model_of, random_weight

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto


def chain() -> ModelProto:
    """Three convolutions with ReLU, 64 channels, 28x28."""
    return conv_chain(3, channels=64, shape=(1, 64, 28, 28))


def wide() -> ModelProto:
    """Two convolutions with ReLU on a batch of 8: each has several tactics of our plugin."""
    return conv_chain(2, channels=64, shape=(8, 64, 56, 56))


def sized() -> ModelProto:
    """One convolution with ReLU; batch, height and width are dynamic."""
    return conv_relu(shape=("n", 3, "h", "w"))


def two_kinds() -> ModelProto:
    """Two convolutions that are sites of different kinds: ReLU, and a stride of two with Clip."""
    weights = {
        "w0": random_weight(16, 8, 3, 3),
        "w1": random_weight(16, 16, 3, 3, seed=1),
        "const_low": np.array(0.0, np.float32),
        "const_high": np.array(6.0, np.float32),
    }
    nodes: list[NodeProto] = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="conv0", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu0"),
        helper.make_node("Conv", ["b", "w1"], ["c"], name="conv1", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Clip", ["c", "const_low", "const_high"], ["y"], name="clip0"),
    ]
    shapes = {"x": (1, 8, 16, 16)}, {"y": (1, 16, 8, 8)}
    return model_of(nodes, inputs=shapes[0], outputs=shapes[1], weights=weights)
