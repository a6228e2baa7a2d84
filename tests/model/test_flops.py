"""Operation counts by the stated conventions."""

from __future__ import annotations

import pytest

from tests.real_models import light_model
from tests.rewrite.graphs import Builder, save
from trtplug.model.flops import node_flops, unit_of
from trtplug.model.load import load_model
from trtplug.model.shapes import infer_shapes


def count(tmp_path, b: Builder, y: str, x=(1, 4, 9, 7), inputs=None) -> int | None:
    model = load_model(save(b.model(y, inputs), tmp_path))
    shapes = infer_shapes(model, {model.inputs[0].name: x})
    return node_flops(model.proto.graph.node[-1], shapes)


@pytest.mark.parametrize(
    ("write", "flops"),
    [
        (lambda b: b.conv("x", 8, 4, bias=False), 8 * 63 * 2 * 4 * 9),
        (lambda b: b.conv("x", 8, 4), 8 * 63 * (2 * 4 * 9 + 1)),
        (lambda b: b.conv("x", 8, 1, group=4, bias=False), 8 * 63 * 2 * 9),
        (lambda b: b.add("ConvTranspose", "x", b.normal(4, 5, 2, 2)), 4 * 63 * 2 * 5 * 4),
        (lambda b: b.add("MatMul", "x", b.normal(7, 6)), 2 * 4 * 9 * 6 * 7),
        (lambda b: b.add("MaxPool", "x", kernel_shape=[3, 3], pads=[1] * 4), 252 * 9),
        (lambda b: b.add("GlobalAveragePool", "x"), 252),
        (lambda b: b.batch_norm("x", 4), 504),
        (lambda b: b.add("Relu", "x"), 252),
        (lambda b: b.add("Add", "x", b.normal(4, 1, 1)), 252),
        (lambda b: b.add("Sum", "x", "x", "x"), 504),
        (lambda b: b.add("Softmax", "x"), 1260),
        (lambda b: b.add("Transpose", "x"), 0),
    ],
)
def test_counts(tmp_path, write, flops):
    b = Builder()
    assert count(tmp_path, b, write(b)) == flops


def test_gemm_counts_its_bias(tmp_path):
    b = Builder()
    y = b.add("Gemm", "x", b.normal(5, 6), b.normal(6))
    model = b.model(y, {"x": (3, 5)})
    del model.graph.output[0].type.tensor_type.shape.dim[2:]
    loaded = load_model(save(model, tmp_path))
    shapes = infer_shapes(loaded, {})
    assert node_flops(loaded.proto.graph.node[0], shapes) == 18 * (2 * 5 + 1)


def test_what_is_unknown_is_not_zero(tmp_path):
    b = Builder()
    assert count(tmp_path, b, b.add("NonMaxSuppression", "x", "x")) is None
    b = Builder()
    y = b.add("Relu", "x")
    model = load_model(save(b.model(y), tmp_path))
    assert node_flops(model.proto.graph.node[0], infer_shapes(model, {})) is None


def test_units():
    b = Builder()
    b.conv("x", 4, 4), b.add("Relu", "x"), b.add("Reshape", "x", "s")
    assert [unit_of(n) for n in b.nodes] == ["matrix", "vector", "none"]


def test_resnet_50_costs_what_is_published():
    # 4.1 billion multiply-adds (He et al., 2015: 3.8 without shortcuts and bias).
    model = load_model(light_model("resnet50"))
    shapes = infer_shapes(model, {})
    total = sum(node_flops(n, shapes) or 0 for n in model.proto.graph.node)
    assert total / 2 == pytest.approx(4.1e9, rel=0.01)
