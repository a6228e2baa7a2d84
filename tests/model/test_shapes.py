"""Sizes of every tensor at given inputs, by inference on a copy without weights."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from tests.real_models import LIGHT, PPOCR, light_model, ppocr_model
from tests.rewrite.graphs import Builder, save
from trtplug.errors import NodeInvalidError, ShapeError
from trtplug.measure.reference import Reference, random_feeds
from trtplug.model.load import load_model
from trtplug.model.shapes import infer_shapes

SIZES = {"det": (1, 3, 64, 96), "rec": (2, 3, 48, 96), "cls": (1, 3, 48, 192)}


@pytest.mark.parametrize("name", [*PPOCR, *LIGHT])
def test_every_tensor_of_the_real_models_has_a_size(name):
    model = load_model(ppocr_model(name) if name in PPOCR else light_model(name))
    before = model.proto.SerializeToString(deterministic=True)
    spec = model.inputs[0]
    shapes = infer_shapes(model, {spec.name: SIZES.get(name, spec.shape)})
    outputs = [o for n in model.proto.graph.node for o in n.output[:1]]
    assert [o for o in outputs if shapes.dims(o) is None] == []
    assert model.proto.SerializeToString(deterministic=True) == before


@pytest.mark.parametrize("name", PPOCR)
def test_sizes_are_those_of_a_real_run(name):
    path = ppocr_model(name)
    model = load_model(path)
    sizes = {model.inputs[0].name: SIZES[name]}
    shapes = infer_shapes(model, sizes)
    outputs = Reference(path).run(random_feeds(model.inputs, sizes, 0))
    assert {n: shapes.dims(n) for n in outputs} == {n: a.shape for n, a in outputs.items()}


def test_types_and_bytes(tmp_path):
    b = Builder()
    y = b.add("Cast", b.conv("x", 5, 4), to=TensorProto.FLOAT16)
    model = b.model(b.add("Cast", y, to=TensorProto.FLOAT))
    shapes = infer_shapes(load_model(save(model, tmp_path)), {"x": (2, 4, 9, 7)})
    assert (shapes.dtype(y), shapes.dims(y)) == ("float16", (2, 5, 9, 7))
    assert (shapes.elements(y), shapes.bytes(y)) == (630, 1260)
    assert (shapes.dims("w0"), shapes.bytes("w0")) == ((5, 4, 3, 3), 720)
    assert (shapes.dims("nowhere"), shapes.dtype("nowhere"), shapes.bytes("nowhere")) == (None,) * 3


def test_an_operator_that_nobody_knows_leaves_its_sizes_open(tmp_path):
    b = Builder()
    y = b.add("Strange", b.add("Relu", "x"), domain="elsewhere")
    model = b.model(y)
    model.opset_import.append(helper.make_opsetid("elsewhere", 1))
    shapes = infer_shapes(load_model(save(model, tmp_path)), {"x": (1, 4, 9, 7)})
    assert (shapes.dims("t0"), shapes.dims(y)) == ((1, 4, 9, 7), None)


def test_a_contradiction_at_these_sizes_names_the_node(tmp_path):
    b = Builder()
    y = b.add("Add", "x", b.normal(1, 4, 5, 7), name="clash")
    model = load_model(save(b.model(y, {"x": (1, 4, "H", 7)}), tmp_path))
    assert infer_shapes(model, {"x": (1, 4, 5, 7)}).dims(y) == (1, 4, 5, 7)
    with pytest.raises(NodeInvalidError, match=r"clash.*Incompatible dimensions"):
        infer_shapes(model, {"x": (1, 4, 9, 7)})


def test_a_window_larger_than_its_input_is_refused(tmp_path):
    b = Builder()
    y = b.add("MaxPool", "x", kernel_shape=[5, 5], name="pool")
    model = load_model(save(b.model(y, {"x": (1, 4, "H", "W")}), tmp_path))
    with pytest.raises(ShapeError, match=r"pool.*smaller than its window"):
        infer_shapes(model, {"x": (1, 4, 3, 9)})


def test_sizes_written_as_minus_one_are_open(tmp_path):
    b = Builder()
    y = b.add("Relu", "x")
    model = load_model(save(b.model(y, {"x": (-1, 4, 9, 7)}), tmp_path))
    assert infer_shapes(model, {}).dims(y) is None
    assert infer_shapes(model, {"x": (3, 4, 9, 7)}).dims(y) == (3, 4, 9, 7)
