"""Nodes of plugins' layers: type, inputs, and the attributes that TensorRT looks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from trtplug.ops.plugin_layer import LAYER_INPUTS, plugin_layer_node, site_key

DIGEST = "f" * 64


@pytest.mark.parametrize("op_type", LAYER_INPUTS)
def test_a_node_of_each_type(op_type: str):
    op = op_type.removesuffix("Residual")
    inputs = LAYER_INPUTS[op_type]
    node = plugin_layer_node(op, DIGEST, inputs, "y", "n", residual=op != op_type)
    assert (node.domain, node.op_type, node.name) == ("trtplug", op_type, "n")
    assert (tuple(node.input), tuple(node.output)) == (inputs, ("y",))
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        "site": DIGEST.encode(),
        "plugin_namespace": b"trtplug",
        "plugin_version": b"1",
        "site_key_high": 2**31 - 1,
        "site_key_low": 2**31 - 1,
        "aot": 1,
    }
    with pytest.raises(ValueError, match="weights, bias"):
        plugin_layer_node(op, DIGEST, inputs[:-1], "y", "n", residual=op != op_type)


@given(st.integers(0, 2**256 - 1))
def test_a_sites_key_is_the_beginning_of_its_digest(number: int):
    high, low = site_key(f"{number:064x}")
    assert min(high, low) >= 0
    assert max(high, low) < 2**31
    assert (high << 31) + low == number >> (256 - 62)
