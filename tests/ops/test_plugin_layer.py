"""Nodes of plugins' layers: type, inputs, and the attributes that TensorRT looks for."""

from __future__ import annotations

import pytest
from onnx import helper

from trtplug.ops.plugin_layer import LAYER_INPUTS, plugin_layer_node


@pytest.mark.parametrize("op_type", LAYER_INPUTS)
def test_a_node_of_each_type(op_type: str):
    op = op_type.removesuffix("Residual")
    inputs = LAYER_INPUTS[op_type]
    node = plugin_layer_node(op, "ab12", inputs, "y", "n", residual=op != op_type)
    assert (node.domain, node.op_type, node.name) == ("trtplug", op_type, "n")
    assert (tuple(node.input), tuple(node.output)) == (inputs, ("y",))
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        "site": b"ab12",
        "plugin_namespace": b"trtplug",
        "plugin_version": b"1",
        "aot": 1,
    }
    with pytest.raises(ValueError, match="weights, bias"):
        plugin_layer_node(op, "ab12", inputs[:-1], "y", "n", residual=op != op_type)
