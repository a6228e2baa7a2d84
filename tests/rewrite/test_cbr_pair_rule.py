"""Pairs of sites: what is one, why others are none; a rewrite with them changes no output."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.rewrite.graphs import Builder, prove, save
from trtplug.model.graph import index_graph
from trtplug.model.load import load_model
from trtplug.ops.cbr_pair import read_node
from trtplug.rewrite.cbr_pair_rule import match_pairs
from trtplug.rewrite.find import find_pairs, search
from trtplug.rewrite.site import PairMissReason


def pairs_of(model, tmp_path):
    return find_pairs(load_model(save(model, tmp_path)))


def inverted_residual(b: Builder, x: str, hidden: int = 12, **depthwise) -> str:
    """MobileNetV2's block: expand, depthwise, project; and what it adds to its input."""
    y = b.add("Clip", b.conv(x, hidden, 4, kernel=(1, 1)), b.weight(0.0), b.weight(6.0))
    y = b.conv(y, hidden, 1, group=hidden, name="dw", **depthwise)
    y = b.add("Clip", b.batch_norm(y, hidden), b.weight(0.0), b.weight(6.0))
    return b.batch_norm(b.conv(y, 4, hidden, kernel=(1, 1), bias=False, name="pw"), 4)


def test_an_inverted_residual_is_a_pair_and_stays_equal(tmp_path):
    b = Builder()
    y = b.add("Add", inverted_residual(b, "x"), "x")
    result = prove(b.model(y), tmp_path, pairs=True)
    (pair,) = result.pairs
    assert pair.label == "dw+pw"
    assert pair.attributes.depthwise.group == 12
    assert pair.attributes.depthwise.activation == "clip"
    assert pair.attributes.pointwise.residual == "before_activation"
    assert [n.op_type for n in result.parts.nodes] == ["CBR", "CBRPair"]
    assert read_node(result.parts.nodes[1]) == pair.attributes
    assert len(result.sites) == 3


def test_without_the_option_there_are_no_pairs(tmp_path):
    b = Builder()
    result = prove(b.model(inverted_residual(b, "x")), tmp_path)
    assert result.pairs == ()
    assert [n.op_type for n in result.parts.nodes] == ["CBR"] * 3


@pytest.mark.parametrize("opset", [7, 13, 21])
@pytest.mark.parametrize("strides", [[1, 1], [2, 1]])
def test_equal_in_every_form(tmp_path, opset, strides):
    b = Builder(opset=opset)
    y = b.conv("x", 4, 1, kernel=(5, 3), pads=[2, 0, 1, 1], strides=strides, group=4)
    y = b.add("Relu", b.conv(b.add("Sigmoid", y), 9, 4, kernel=(1, 1)))
    y = b.conv(b.conv(y, 9, 1, group=9, bias=False), 5, 9, kernel=(1, 1), dilations=[2, 2])
    result = prove(b.model(b.add("Tanh", y)), tmp_path, pairs=True)
    assert len(result.pairs) == 2
    assert [n.op_type for n in result.parts.nodes] == ["CBRPair"] * 2


def test_a_scale_between_folds_into_the_second(tmp_path):
    b = Builder()
    y = b.add("Relu", b.conv("x", 4, 1, group=4))
    y = b.add("Mul", y, b.weight(np.full((1, 4, 1, 1), 0.5)), name="scale")
    result = prove(b.model(b.conv(y, 6, 4, kernel=(1, 1))), tmp_path, pairs=True)
    assert [n.op_type for n in result.parts.nodes] == ["CBRPair"]


def test_pairs_in_a_subgraph(tmp_path):
    b = Builder()
    inner = Builder(seed=1)
    y = inner.conv(inner.conv("x", 4, 1, group=4), 4, 4, kernel=(1, 1))
    renamed = {n: f"inner_{n}" for n in inner.weights}
    for node in inner.nodes:
        node.input[:] = [renamed.get(n, n) for n in node.input]
        node.output[:] = [f"inner_{n}" if n != "x" else n for n in node.output]
        node.input[:] = [f"inner_{n}" if n.startswith("t") else n for n in node.input]
    b.weights |= {renamed[n]: w for n, w in inner.weights.items()}
    value = [helper.make_tensor_value_info(f"inner_{y}", TensorProto.FLOAT, [None] * 4)]
    then = helper.make_graph(inner.nodes, "then", [], value)
    other = [helper.make_tensor_value_info("same", TensorProto.FLOAT, [None] * 4)]
    orelse = helper.make_graph([helper.make_node("Identity", ["x"], ["same"])], "else", [], other)
    b.weights["on"] = np.array(True)
    out = b.add("If", "on", then_branch=then, else_branch=orelse)
    result = prove(b.model(out, {"x": (1, 4, 9, 7)}), tmp_path, shapes=((1, 4, 9, 7),), pairs=True)
    assert len(result.pairs) == 1


def miss_of(model, tmp_path):
    pairs, (miss,) = pairs_of(model, tmp_path)
    assert pairs == ()
    assert prove(model, tmp_path, pairs=True).pairs == ()
    return miss.conv, miss.reason, miss.node


def depthwise(b: Builder, x: str = "x", channels: int = 4, **given) -> str:
    return b.conv(x, channels, 1, group=channels, name="dw", **given)


def pointwise(b: Builder, x: str, **given) -> str:
    return b.conv(x, 4, 4 // given.get("group", 1), **{"kernel": (1, 1), "name": "pw", **given})


def test_not_depthwise(tmp_path):
    b = Builder()
    y = b.conv("x", 8, 1, group=4, name="dw")
    model = b.model(b.conv(y, 4, 8, kernel=(1, 1), name="pw"))
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.NOT_DEPTHWISE, "dw")


def test_a_residual_of_the_first(tmp_path):
    b = Builder()
    model = b.model(pointwise(b, b.add("Add", depthwise(b), "x")))
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.RESIDUAL, "dw")


def test_between_is_a_graph_output(tmp_path):
    b = Builder()
    y = depthwise(b)
    assert miss_of(b.model([y, pointwise(b, y)]), tmp_path) == (
        "dw",
        PairMissReason.GRAPH_OUTPUT,
        "dw",
    )


@pytest.mark.parametrize("others", ["op", "convolution", "residual", "fold"])
def test_between_is_read_by_others(tmp_path, others):
    b = Builder()
    y = b.add("Relu", depthwise(b))
    outputs = []
    if others == "op":
        outputs = [b.add("Exp", y, name="other"), pointwise(b, y)]
    elif others == "convolution":
        outputs = [pointwise(b, y), pointwise(b, y, name="other")]
    elif others == "residual":
        outputs = [b.add("Add", pointwise(b, y), y, name="other")]
    else:
        y = b.add("Mul", y, b.weight(np.full((1, 4, 1, 1), 0.5)), name="scale")
        outputs = [pointwise(b, y), b.add("Exp", y, name="other")]
    assert miss_of(b.model(outputs), tmp_path) == ("dw", PairMissReason.MULTI_CONSUMER, "other")


def test_what_folds_between_is_a_graph_output(tmp_path):
    b = Builder()
    y = b.add("Relu", depthwise(b))
    y = b.add("Mul", y, b.weight(np.full((1, 4, 1, 1), 0.5)), name="scale")
    conv, reason, _ = miss_of(b.model([pointwise(b, y), y]), tmp_path)
    assert (conv, reason) == ("dw", PairMissReason.MULTI_CONSUMER)


def test_several_readers_and_no_convolution_among_them(tmp_path):
    b = Builder()
    y = b.add("Relu", depthwise(b))
    model = b.model(b.add("Add", b.add("Exp", y, name="other"), b.add("Neg", y)))
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.MULTI_CONSUMER, "other")


def test_another_op_follows(tmp_path):
    b = Builder()
    model = b.model(pointwise(b, b.add("Exp", depthwise(b), name="other")))
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.OTHER_OP, "other")


def test_a_near_miss_follows(tmp_path):
    b = Builder()
    y = b.add("Conv", depthwise(b), "v", name="pw")
    model = b.model(y, {"x": ("N", 4, 9, 7), "v": (4, 4, 1, 1)})
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.OTHER_OP, "pw")


def test_nobody_reads_it(tmp_path):
    b = Builder()
    depthwise(b)
    assert miss_of(b.model(b.add("Relu", "x")), tmp_path) == (
        "dw",
        PairMissReason.NO_CONSUMER,
        "dw",
    )


def test_another_type_follows(tmp_path):
    b = Builder()
    y = b.add("Cast", depthwise(b), to=TensorProto.FLOAT16, name="cast")
    half = Builder(dtype=np.float16)
    half.nodes, half.weights = b.nodes, b.weights
    y = b.add("Cast", pointwise(half, y), to=TensorProto.FLOAT)
    assert miss_of(b.model(y), tmp_path) == ("dw", PairMissReason.TYPE_CHANGE, "cast")


def test_types_that_contradict_are_no_pair(tmp_path):
    """No valid model has this; the rule does not lean on that."""
    b = Builder()
    model = load_model(save(b.model(pointwise(b, depthwise(b))), tmp_path))
    ((scope, matches),), _ = search(model, index_graph(model.proto.graph), None)
    first, second = matches
    second = dataclasses.replace(second, site=dataclasses.replace(second.site, dtype="float16"))
    pairs, (miss,) = match_pairs(scope.graph, (first, second))
    assert (pairs, miss.reason, miss.node) == ((), PairMissReason.TYPE_CHANGE, "pw")


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": (3, 3)},
        {"strides": [2, 1]},
        {"pads": [0, 0, 1, 0]},
        {"kernel": (1, 3), "pads": [0, 0, 0, 0]},
    ],
)
def test_the_second_is_not_pointwise(tmp_path, given):
    b = Builder()
    model = b.model(pointwise(b, depthwise(b), **given))
    assert miss_of(model, tmp_path) == ("dw", PairMissReason.NOT_POINTWISE, "pw")


def test_the_second_has_groups(tmp_path):
    b = Builder()
    pairs, misses = pairs_of(b.model(pointwise(b, depthwise(b), group=2)), tmp_path)
    assert pairs == ()
    assert [(m.conv, m.reason) for m in misses] == [
        ("dw", PairMissReason.NOT_POINTWISE),
        ("pw", PairMissReason.NOT_DEPTHWISE),
    ]


def test_dense_convolutions_are_not_spoken_of(tmp_path):
    b = Builder()
    assert pairs_of(b.model(pointwise(b, b.conv("x", 4, 4))), tmp_path) == ((), ())


def test_only_some_sites(tmp_path):
    b = Builder()
    model = b.model(pointwise(b, depthwise(b)))
    result = prove(model, tmp_path, pairs=True, only=("dw",))
    assert result.pairs == ()
    assert [n.op_type for n in result.parts.nodes] == ["CBR", "Conv"]


@pytest.mark.parametrize("reason", PairMissReason)
def test_every_reason_has_one_sentence(reason):
    assert reason.sentence.endswith(".")
    assert reason.value == reason.name.lower()
