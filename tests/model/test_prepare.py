"""What the builder is given: mended where its parser would stumble, untouched everywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.models import add, conv_relu, model_of, save
from trtplug.model.load import load_model
from trtplug.model.ranges import resolve_ranges
from trtplug.model.source import Prepared, prepare
from trtplug.tensor import parse_shape_range

if TYPE_CHECKING:
    from pathlib import Path


def prepared(folder: Path, proto: onnx.ModelProto, *given: str) -> Prepared:
    model = load_model(save(proto, folder / "m.onnx"))
    before = model.proto.SerializeToString(deterministic=True)
    result = prepare(model, resolve_ranges(model, tuple(map(parse_shape_range, given))))
    assert model.proto.SerializeToString(deterministic=True) == before
    return result


def mended(result: Prepared) -> onnx.ModelProto:
    assert result.data is not None
    return onnx.load_from_string(result.data)


def test_plain_model_is_given_as_it_is(tmp_path: Path):
    result = prepared(tmp_path, conv_relu())
    assert result == Prepared(data=None, names={"conv0": "conv0", "relu0": "relu0"}, repairs=())


def test_node_without_a_name_needs_none(tmp_path: Path):
    result = prepared(tmp_path, conv_relu(conv_name="", activation_name=""))
    assert result.data is None
    assert set(result.names) == {"node_of_conv0_out", "node_of_y"}


def test_doubled_names_become_names_of_their_own(tmp_path: Path):
    result = prepared(tmp_path, conv_relu(conv_name="n", activation_name="n"))
    names = [n.name for n in mended(result).graph.node]
    assert len(set(names)) == 2
    assert set(result.names) == set(names)
    assert "2 node names" in result.repairs[0]


@pytest.mark.parametrize(
    "name", ["a[b]", "{c}", "d\ne", "f, g", "\x00", "\x1f", "\u2028", "[ONNX Layer: x]"]
)
def test_names_that_would_confuse_the_listing_are_replaced(tmp_path: Path, name: str):
    result = prepared(tmp_path, conv_relu(conv_name=name))
    (safe,) = [k for k in result.names if k != "relu0"]
    assert not set(safe) & set("[]{}\n,\x00\x1f\u2028")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(names=st.lists(st.text(max_size=6), min_size=3, max_size=3))
def test_builders_names_are_distinct_and_lead_back_to_each_node(tmp_path: Path, names: list[str]):
    nodes = [
        helper.make_node("Relu", ["x"], ["p"], name=names[0]),
        helper.make_node("Relu", ["p"], ["q"], name=names[1]),
        helper.make_node("Relu", ["q"], ["y"], name=names[2]),
    ]
    proto = model_of(nodes, inputs={"x": (4,)}, outputs={"y": (4,)})
    result = prepared(tmp_path, proto)
    given_names = [n.name for n in (mended(result) if result.data else proto).graph.node]
    told = [n or f"node_of_{o}" for n, o in zip(given_names, "pqy", strict=True)]
    assert set(told) == set(result.names)
    assert len(set(result.names.values())) == 3


def test_placeholder_axes_are_parted_and_named_axes_are_not(tmp_path: Path):
    proto = conv_relu(shape=("?", 3, "?", "?"))
    result = prepared(tmp_path, proto, "x=1x3x8x8:2x3x8x16:4x3x8x32")
    dims = mended(result).graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param for d in dims] == ["x.axis0", "", "x.axis2", "x.axis3"]
    result = prepared(tmp_path, add(shape=("N", 4)), "a=1x4:2x4:3x4", "b=1x4:2x4:3x4")
    assert result.data is None


def test_axes_of_one_name_with_unlike_ranges_are_parted_and_told(tmp_path: Path):
    result = prepared(tmp_path, conv_relu(shape=("N", 3, "S", "S")), "x=1x3x8x8:1x3x8x16:1x3x8x32")
    dims = mended(result).graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param for d in dims] == ["N", "", "x.axis2", "x.axis3"]
    assert result.repairs == (
        "input axes called 'S' were taken as unrelated: the ranges given for them differ",
    )


def batch_norm(*outputs: str, read: str | None = None) -> onnx.ModelProto:
    one = np.ones(3, np.float32)
    nodes = [helper.make_node("BatchNormalization", list("xsbmv"), list(outputs), name="bn")]
    if read:
        nodes.append(helper.make_node("Relu", [read], ["z"], name="reader"))
    return model_of(
        nodes,
        inputs={"x": (1, 3, 4, 4)},
        outputs={"y": (1, 3, 4, 4)},
        weights=dict.fromkeys("sbmv", one),
        opset=9,
    )


def test_unread_training_outputs_of_batch_norm_are_dropped(tmp_path: Path):
    result = prepared(tmp_path, batch_norm("y", "m2", "v2"))
    assert list(mended(result).graph.node[0].output) == ["y"]
    assert prepared(tmp_path, batch_norm("y")).data is None
    assert prepared(tmp_path, batch_norm("y", "m2", "v2", read="m2")).data is None


def test_all_repairs_at_once_leave_the_rest_as_it_was(tmp_path: Path):
    proto = conv_relu(shape=("?", 3, "?", 8), conv_name="n", activation_name="n")
    result = mended(prepared(tmp_path, proto, "x=1x3x8x8:2x3x8x8:4x3x9x8"))
    for node in (*result.graph.node, *proto.graph.node):
        node.name = ""
    for value in (*result.graph.input, *proto.graph.input):
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    assert result == proto
