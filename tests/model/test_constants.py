"""Constants through the operators that exporters put around them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from trtplug.model.constants import Constants
from trtplug.model.graph import index_graph

VALUE = np.arange(6, dtype=np.float32).reshape(2, 3)
LISTS = {"three_two": [3, 2], "minus": [0, -1], "axes": [0, 2], "two": [2], "zero": [0]}


def find(nodes, inputs=("x",), **options):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in inputs],
        [],
        [numpy_helper.from_array(VALUE, "v")]
        + [numpy_helper.from_array(np.asarray(v), n) for n, v in LISTS.items()],
    )
    return Constants(index_graph(graph), Path(), **options)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (helper.make_node("Identity", ["v"], ["y"]), VALUE),
        (helper.make_node("Cast", ["v"], ["y"], to=TensorProto.FLOAT16), VALUE.astype(np.float16)),
        (helper.make_node("Reshape", ["v", "three_two"], ["y"]), VALUE.reshape(3, 2)),
        (helper.make_node("Reshape", ["v", "minus"], ["y"]), VALUE),
        (helper.make_node("Unsqueeze", ["v"], ["y"], axes=[0, 2]), VALUE.reshape(1, 2, 1, 3)),
        (helper.make_node("Unsqueeze", ["v", "axes"], ["y"]), VALUE.reshape(1, 2, 1, 3)),
        (helper.make_node("Transpose", ["v"], ["y"]), VALUE.T),
        (helper.make_node("Transpose", ["v"], ["y"], perm=[0, 1]), VALUE),
        (helper.make_node("ConstantOfShape", ["three_two"], ["y"]), np.zeros((3, 2), np.float32)),
        (helper.make_node("Constant", [], ["y"], value_floats=[1.0, 2.0]), np.float32([1, 2])),
        (helper.make_node("Constant", [], ["y"], value_float=3.0), np.float32(3)),
        (helper.make_node("Constant", [], ["y"], value_ints=[4]), np.int64([4])),
        (
            helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(VALUE)),
            VALUE,
        ),
    ],
)
def test_values_and_sizes(node, expected):
    constant = find([node]).get("y")
    assert constant.dims == expected.shape
    assert constant.elem_type == helper.np_dtype_to_tensor_dtype(np.asarray(expected).dtype)
    np.testing.assert_array_equal(constant.read(), expected)


@pytest.mark.parametrize(
    "node",
    [
        helper.make_node("Identity", ["x"], ["y"]),
        helper.make_node("Add", ["v", "v"], ["y"]),
        helper.make_node("DequantizeLinear", ["v", "v"], ["y"]),
        helper.make_node("Reshape", ["v", "x"], ["y"]),
        helper.make_node("Reshape", ["v", "two"], ["y"]),
        helper.make_node("Transpose", ["v"], ["y"], perm=[0, 7]),
        helper.make_node("ConstantOfShape", ["v"], ["y"]),
        helper.make_node("Identity", ["v"], ["y"], domain="other"),
    ],
)
def test_what_is_not_constant_or_contradicts_itself(node):
    assert find([node]).get("y") is None or node.op_type == "ConstantOfShape"


def test_initializers_that_are_inputs_may_be_replaced():
    nodes = [helper.make_node("Identity", ["v"], ["y"])]
    assert find(nodes, ("v",)).get("y").overridable
    assert not find(nodes, ("v",), keep_overridable=False).get("y").overridable
    assert not find(nodes).get("y").overridable


def test_a_chain_of_20_000_nodes_needs_no_recursion():
    names = ["v", *(f"t{i}" for i in range(20_000))]
    chain = [helper.make_node("Identity", [a], [b]) for a, b in itertools.pairwise(names)]
    np.testing.assert_array_equal(find(chain).get(names[-1]).read(), VALUE)


def test_values_at_the_end_of_a_long_chain_are_read_without_recursion():
    names = ["v", *(f"t{i}" for i in range(6_000))]
    given = {"Transpose": {}, "Cast": {"to": TensorProto.FLOAT}}
    makers = itertools.cycle(("Transpose", "Cast", "Transpose"))
    chain = [
        helper.make_node(op_type, [a], [b], **given[op_type])
        for op_type, (a, b) in zip(makers, itertools.pairwise(names), strict=False)
    ]
    np.testing.assert_array_equal(find(chain).get(names[-1]).read(), VALUE)


def test_a_huge_fill_is_not_expanded():
    shape = numpy_helper.from_array(np.asarray([2**20, 2**20]))
    nodes = [
        helper.make_node("Constant", [], ["s"], value=shape),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
    ]
    assert find(nodes).get("y") is None
