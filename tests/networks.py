"""ResNet-18 and MobileNetV2, built here: the topologies of their papers, weights drawn at random.

No trained weights are at hand. He's initialisation keeps the values in range through all layers,
and every BatchNormalization has statistics and a scale of its own, so that folding them is no mere
copying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from tests.models import model_of

if TYPE_CHECKING:
    import onnx

RESNET_STAGES = (64, 128, 256, 512)
"""Channels; two blocks each (He et al. 2015, table 1)."""

MOBILENET_BLOCKS = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
    (6, 320, 1, 1),
)  # fmt: skip
"""Expansion, channels, repeats, stride of the first (Sandler et al. 2018, table 2)."""


class _Builder:
    def __init__(self, seed: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.random = np.random.default_rng(seed)

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def weight(self, values: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(values, np.float32)
        return name

    def conv(
        self, x: str, channels: int, outputs: int, kernel: int, stride: int = 1, group: int = 1
    ) -> str:
        """Convolution and BatchNormalization."""
        shape = (outputs, channels // group, kernel, kernel)
        deviation = (2 / (shape[1] * kernel * kernel)) ** 0.5
        weight = self.weight(self.random.standard_normal(shape) * deviation)
        y = self.add("Conv", [x, weight], strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
        draw = self.random.uniform
        statistics = (
            draw(0.8, 1.2, outputs), draw(-0.1, 0.1, outputs), draw(-0.1, 0.1, outputs),
            draw(0.8, 1.2, outputs),
        )  # fmt: skip
        return self.add("BatchNormalization", [y, *map(self.weight, statistics)])

    def relu6(self, x: str) -> str:
        return self.add("Clip", [x, self.weight(np.array(0.0)), self.weight(np.array(6.0))])

    def model(self, x: str, channels: int, size: int) -> onnx.ModelProto:
        """With pooling and a classifier of ten classes at the end."""
        flat = self.add("Flatten", [self.add("GlobalAveragePool", [x])])
        weight = self.weight(self.random.standard_normal((channels, 10)) / channels**0.5)
        self.nodes.append(helper.make_node("MatMul", [flat, weight], ["y"], name="classifier"))
        return model_of(
            self.nodes,
            inputs={"x": (1, 3, size, size)},
            outputs={"y": (1, 10)},
            weights=self.weights,
        )


def resnet18(size: int = 64, seed: int = 0) -> onnx.ModelProto:
    """20 convolutions; `size` is the input's height and width, 224 in the paper."""
    b = _Builder(seed)
    x = b.add("Relu", [b.conv("x", 3, 64, 7, stride=2)])
    x = b.add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, outputs in enumerate(RESNET_STAGES):
        for block in range(2):
            stride = 2 if stage and not block else 1
            y = b.add("Relu", [b.conv(x, channels, outputs, 3, stride)])
            y = b.conv(y, outputs, outputs, 3)
            if stride > 1:
                x = b.conv(x, channels, outputs, 1, stride)
            x, channels = b.add("Relu", [b.add("Add", [y, x])]), outputs
    return b.model(x, channels, size)


def mobilenet_v2(size: int = 64, seed: int = 0) -> onnx.ModelProto:
    """52 convolutions; `size` as in `resnet18`."""
    b = _Builder(seed)
    x, channels = b.relu6(b.conv("x", 3, 32, 3, stride=2)), 32
    for expansion, outputs, repeats, first_stride in MOBILENET_BLOCKS:
        for number in range(repeats):
            stride = 1 if number else first_stride
            inner = channels * expansion
            y = b.relu6(b.conv(x, channels, inner, 1)) if expansion > 1 else x
            y = b.relu6(b.conv(y, inner, inner, 3, stride, group=inner))
            y = b.conv(y, inner, outputs, 1)
            x = b.add("Add", [y, x]) if stride == 1 and channels == outputs else y
            channels = outputs
    x = b.relu6(b.conv(x, channels, 1280, 1))
    return b.model(x, 1280, size)
