"""Layers joined with ONNX nodes, sizes, work, and sites: on a small engine written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from tests.report.test_bounds import GPU
from trtplug.backends.layer_listing import EngineLayer, LayerTensor, Listing
from trtplug.model.load import load_model
from trtplug.model.ranges import resolve_ranges
from trtplug.report.candidates import NO_TABLES
from trtplug.report.layers import LayerContext, added_kind, kernel_of, report_layers
from trtplug.report.make import report_totals
from trtplug.report.model_facts import gather_facts
from trtplug.report.sites import report_near_misses, report_sites
from trtplug.tensor import parse_shape_range

NHWC, LINEAR = "(NHWC) Channel major format", "(Linear) Row major linear format"


def tensor(name, dims, layout=NHWC, dtype="Float", strides=()):
    return LayerTensor(name=name, dims=dims, strides=strides, dtype=dtype, format=layout)


def layer(name, kind, inputs=(), outputs=(), onnx=(), tactic="", constants=()):
    return EngineLayer(
        name=name,
        type=kind,
        inputs=tuple(inputs),
        constants=tuple(constants),
        outputs=tuple(outputs),
        tactic=tactic,
        onnx_layers=tuple(onnx),
    )


@pytest.fixture
def facts(tmp_path):
    """conv0+relu0 -> conv1, sigmoid apart; 3x8 channels, dynamic height and width, opt 16."""
    weights = [
        numpy_helper.from_array(np.ones((8, 3, 3, 3), np.float32), "w0"),
        numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "w1"),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "conv0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "relu0"),
        helper.make_node("Conv", ["b", "w1"], ["c"], "conv1"),
        helper.make_node("Sigmoid", ["c"], ["y"], "sigmoid0"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, "h", "w"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, "h", "w"])],
        weights,
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    model = load_model(tmp_path / "m.onnx")
    return gather_facts(model, resolve_ranges(model, (parse_shape_range("x=1x3x8x8:1x3x16x16"),)))


def rows_of(facts, *layers):
    context = LayerContext(
        listing=Listing(layers=layers, io_names=("x", "y"), unparsed=0),
        names={},
        facts=facts,
        profiles=(GPU,),
        tf32=True,
        joined=NO_TABLES,
    )
    return report_layers(context)


MOVE = layer(
    "move", "kgen", [tensor("x", (1, 3, -1, -1), LINEAR)], [tensor("t0", (1, 3, -1, -1))],
    tactic="__myl_Move",
)  # fmt: skip
CONV0 = layer(
    "conv0+relu0", "runtime_fusion", [tensor("t0", (1, 3, -1, -1))],
    [tensor("t1", (1, 8, -1, -1))], ("conv0", "relu0"), constants=[tensor("k", (8, 3, 3, 3))],
)  # fmt: skip
CONV1 = layer(
    "conv1", "correlation", [tensor("t1", (1, 8, -1, -1))], [tensor("t2", (1, 8, -1, -1))],
    ("conv1",), "__myelin_CASK_STUB",
)  # fmt: skip
SIGMOID = layer(
    "sigmoid", "kgen", [tensor("t2", (1, 8, -1, -1))], [tensor("y", (1, 8, -1, -1), LINEAR)],
    ("sigmoid0", "conv1"), "__myl_Sigm",
)  # fmt: skip


def test_a_row_says_what_the_layer_does(facts):
    mean = (8 + 16) // 2  # MIN:MAX alone: opt is their middle
    rows = rows_of(facts, MOVE, CONV0, CONV1, SIGMOID)
    move, conv0, conv1, sigmoid = rows
    assert move.added == "reformat"
    assert move.flops == 0
    assert move.inputs[0].dims_at_opt == (1, 3, mean, mean)
    assert move.outputs[0].dims_at_opt == (1, 3, mean, mean)
    assert conv0.added is None
    assert conv0.flops == 2 * 8 * mean * mean * 27 + 8 * mean * mean
    assert conv0.bytes == 4 * (3 * mean**2 + 8 * 27 + 8 * mean**2)
    assert conv0.intensity == pytest.approx(conv0.flops / conv0.bytes)
    assert (conv0.kernel, conv0.kernel_status) == (None, "chosen_at_first_run")
    assert (conv1.kernel, conv1.kernel_status) == (None, "chosen_at_first_run")
    assert (sigmoid.kernel, sigmoid.kernel_status) == ("__myl_Sigm", "chosen")
    # conv1 is named in two layers; it counts in the one that is no generated kernel.
    assert conv1.flops == 2 * 8 * mean * mean * 8
    assert sigmoid.flops == facts.flops("sigmoid0") > 0
    assert set(conv0.bound_us) == {"test"}


def test_sites_say_what_became_of_them(facts):
    rows = rows_of(facts, MOVE, CONV0, CONV1, SIGMOID)
    first, second = report_sites(facts, rows)
    assert (first.conv, first.outcome) == ("conv0", "native_fused")
    # Sigmoid is part of the site, and one layer holds both it and the convolution.
    assert (second.conv, second.activation, second.outcome) == ("conv1", "sigmoid", "native_fused")
    apart = rows_of(facts, MOVE, CONV0, CONV1, layer("s", "kgen", onnx=("sigmoid0",)))
    split = report_sites(facts, apart)[1]
    assert split.outcome == "native_unfused"
    assert "sigmoid0 fell into s" in split.why
    assert split.layers == ("conv1", "s")
    assert report_sites(facts, rows_of(facts, MOVE))[0].outcome == "unknown"


def test_totals_add_up(facts):
    rows = rows_of(facts, MOVE, CONV0, CONV1, SIGMOID)
    sites, misses = report_sites(facts, rows), report_near_misses(facts, rows)
    totals = report_totals(rows, sites, misses)
    assert totals.layers == 4
    assert totals.flops == sum(r.flops for r in rows)
    assert totals.flops == sum(facts.flops(label) for label in facts.nodes)
    assert (totals.kernels_chosen, totals.kernels_at_first_run) == (2, 2)
    assert (totals.added_reformats, totals.added_casts) == (1, 0)
    assert (totals.sites, totals.sites_fused, totals.near_misses) == (2, 2, 0)
    assert sum(share.layers for share in totals.by_type) == 4
    assert totals.bound_us["test"] == pytest.approx(sum(r.bound_us["test"] for r in rows))


def test_what_cannot_be_told_is_none(facts):
    odd = layer("odd", "kgen", [tensor("p", (-1, 5)), tensor("q", (-1,))], [tensor("r", (-1, 5))])
    (row,) = rows_of(facts, odd)
    assert row.inputs[0].dims_at_opt is None
    assert row.bytes is None
    assert row.flops is None
    assert row.added == "other"
    assert row.bound_us == {}


@pytest.mark.parametrize(
    ("inputs", "outputs", "kind"),
    [
        ([], [], "sync"),
        ([], [tensor("a", (1,))], "fill"),
        ([tensor("a", (1,))], [tensor("b", (1,), dtype="Half")], "cast"),
        ([tensor("a", (1,), LINEAR)], [tensor("b", (1,))], "reformat"),
        ([tensor("a", (2, 1), strides=(1, 2))], [tensor("b", (2, 1), strides=(1, 1))], "reformat"),
        ([tensor("a", (1,))], [tensor("b", (1,))], "copy"),
        ([tensor("a", (1,)), tensor("c", (1,))], [tensor("b", (1,))], "other"),
    ],
)
def test_what_the_builder_added(inputs, outputs, kind):
    assert added_kind(layer("l", "kgen", inputs, outputs)) == kind


def test_what_holds_weights_is_no_reformat():
    # As RTX makes of a 1x1 convolution in FP16: one input, one output, other layouts, no nodes.
    ends = ([tensor("a", (4, 1), strides=(1, 4))], [tensor("b", (4, 1), strides=(1, 1))])
    weights = [tensor("w", (4, 4))]
    assert added_kind(layer("__myl_Fc_myl0_38", "gemm", *ends, constants=weights)) == "other"


@pytest.mark.parametrize(
    ("kind", "tactic", "kernel"),
    [
        ("kgen", "__myl_Move_0xa2", ("__myl_Move_0xa2", "chosen")),
        ("correlation", "__myelin_CASK_STUB", (None, "chosen_at_first_run")),
        ("runtime_fusion", "", (None, "chosen_at_first_run")),
        ("maxpool", "", (None, "unknown")),
    ],
)
def test_a_stub_is_no_kernel(kind, tactic, kernel):
    assert kernel_of(layer("l", kind, [tensor("a", (1,))], tactic=tactic)) == kernel
    assert kernel_of(layer("l", "signal")) == (None, "none")


def test_a_layer_that_moves_nothing_has_no_bytes(facts):
    view = layer("view", "NoOp", [tensor("x", (1, 3, 8, 8))], [tensor("t", (1, 192))])
    copy = layer("copy", "kgen", [tensor("x", (1, 3, 8, 8))], [tensor("t", (1, 3, 8, 8))])
    free, moved = rows_of(facts, view, copy)
    assert free.bytes == 0
    assert moved.bytes
