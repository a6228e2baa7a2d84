"""Nodes that contradict themselves are refused by name; odd weights are worth a warning."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper

from tests.real_models import LIGHT, PPOCR, light_model, ppocr_model
from tests.rewrite.graphs import Builder, save
from trtplug.errors import NodeInvalidError, RewriteInvalidError
from trtplug.model.load import load_model
from trtplug.model.save import parts_of
from trtplug.model.validate import check_parts, model_warnings, validate


def conv(**given) -> Builder:
    b = Builder()
    b.add("Conv", "x", b.normal(6, 2, 3, 3), name="c", **{"group": 2, **given})
    return b


def normalization(variance) -> Builder:
    b = Builder()
    b.batch_norm("x", 4)
    b.nodes[0].name = "bn"
    b.weights["w3"] = np.asarray(variance, np.float32)
    return b


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (
            conv(kernel_shape=[3, 5]),
            r"'c' \(Conv\): kernel_shape \[3, 5\] contradicts .* \[6, 2, 3, 3\]",
        ),
        (conv(group=4), "group 4 does not divide the 6 output channels"),
        (conv(group=0), "group 0 does not divide"),
        (conv(pads=[1, 1]), r"pads \[1, 1\] has 2 values; 4 are needed for 2 spatial axes"),
        (conv(pads=[0, 0, -1, 0]), r"pads \[0, 0, -1, 0\] holds a value below 0"),
        (conv(strides=[1]), r"strides \[1\] has 1 values; 2 are needed"),
        (conv(strides=[0, 1]), r"strides \[0, 1\] holds a value below 1"),
        (conv(dilations=[1, 1, 1]), r"dilations \[1, 1, 1\] has 3 values"),
        (conv(auto_pad="SAME"), "auto_pad 'SAME' is none of"),
        (
            conv(auto_pad="SAME_UPPER", pads=[0, 1, 0, 0]),
            r"auto_pad SAME_UPPER and pads \[0, 1, 0, 0\] contradict each other",
        ),
        (conv(group=2.5), "attribute group is of type FLOAT; INT wanted"),
        (
            normalization([1, 1, -2, 1]),
            r"'bn' .*variance -2 of channel 2 is negative beyond epsilon",
        ),
        (normalization([1, 1, 1]), r"unlike sizes: \[4\], \[4\], \[4\], \[3\]"),
    ],
)
def test_contradictions(tmp_path, builder, words):
    model = load_model(save(builder.model(builder.nodes[-1].output[0]), tmp_path))
    with pytest.raises(NodeInvalidError, match=words):
        validate(model)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (helper.make_node("Relu", ["x", "x"], ["y"], name="n"), "it has 2 inputs; 1 wanted"),
        (helper.make_node("Add", ["x", ""], ["y"], name="n"), r"its input 1 \(B\) is left out"),
        (helper.make_node("Cast", ["x"], ["y"], name="n"), "it lacks the attribute to"),
        (helper.make_node("Relu", ["y"], ["y"], name="n"), "it waits for 'n'"),
    ],
)
def test_nodes_that_break_their_description(tmp_path, node, words):
    b = Builder()
    b.nodes.append(node)
    with pytest.raises(NodeInvalidError, match=words):
        validate(load_model(save(b.model("y"), tmp_path)))


def test_a_bias_of_another_type(tmp_path):
    b = Builder()
    y = b.add("Conv", "x", b.normal(4, 4, 1, 1), b.weight(np.zeros(4), np.float16), name="c")
    with pytest.raises(NodeInvalidError, match="its bias is of type float16; its weight is float"):
        validate(load_model(save(b.model(y), tmp_path)))


def test_rounding_of_a_variance_to_just_below_zero_is_no_fault(tmp_path):
    b = normalization([1, -1e-9, 0, 1])
    validate(load_model(save(b.model("t0"), tmp_path)))


@pytest.mark.parametrize("name", [*PPOCR, *LIGHT])
def test_the_real_models_are_sound(name):
    model = load_model(ppocr_model(name) if name in PPOCR else light_model(name))
    validate(model)
    warnings = model_warnings(model)
    assert len(warnings) == (name in LIGHT), warnings


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_no_numbers_are_named(tmp_path, value, external):
    b = Builder()
    y = b.conv("x", 4, 4)
    b.weights["w0"][3, 2, 1, 0] = value
    model = b.model(y)
    if external:
        external_data_helper.convert_model_to_external_data(model, size_threshold=0)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    assert model_warnings(load_model(path)) == ("tensor 'w0' holds NaN or infinite values",)


def test_batch_statistics_are_named(tmp_path):
    b = Builder()
    y = b.batch_norm("x", 4, outputs=3, training_mode=1)
    (warning,) = model_warnings(load_model(save(b.model(y), tmp_path)))
    assert "'n0'" in warning
    assert "evaluation mode" in warning


def test_what_the_checker_refuses_is_not_written(tmp_path):
    b = Builder()
    model = b.model(b.add("Relu", "nowhere"))
    with pytest.raises(RewriteInvalidError, match="nowhere"):
        check_parts(parts_of(model, tmp_path), tmp_path / "m.onnx")
