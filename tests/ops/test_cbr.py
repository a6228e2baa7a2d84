"""The op against ONNX Runtime's own convolution, and its shapes, attributes and function."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.runtime import newest_opset
from trtplug.measure.reference import Reference
from trtplug.ops.cbr import (
    ACTIVATIONS,
    DOMAIN,
    RESIDUALS,
    VERSION,
    CbrAttributes,
    make_node,
    output_shape,
    read_node,
    reference,
)
from trtplug.ops.cbr_function import make_function, overload_name

PARAMETERS = {
    "clip": {"min": -0.5, "max": 1.5},
    "leaky_relu": {"alpha": 0.125},
    "hard_sigmoid": {"alpha": 0.25, "beta": 0.5},
    "hard_swish": {"alpha": float(np.float32(1 / 6)), "beta": 0.5},
}


def attributes_of(activation: str, residual: str = "none", **given) -> CbrAttributes:
    values = {"kernel_shape": (3, 3), **PARAMETERS.get(activation, {}), **given}
    return CbrAttributes(activation=activation, residual=residual, **values)


def one_node_model(a: CbrAttributes, arrays: dict[str, np.ndarray], opset: int) -> onnx.ModelProto:
    name = overload_name(a, "float")
    inputs = ["x", "w", "b"] + (["r"] if a.residual != "none" else [])
    fed = [helper.make_tensor_value_info(n, TensorProto.FLOAT, arrays[n].shape) for n in inputs]
    graph = helper.make_graph(
        [make_node(a, inputs, "y", "cbr", name)],
        "g",
        fed[:1] + fed[3:],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(arrays[n], n) for n in ("w", "b")],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[make_function(a, "float", opset)],
        ir_version=10,
    )


def run(a: CbrAttributes, arrays: dict[str, np.ndarray], opset: int, path) -> np.ndarray:
    model = one_node_model(a, arrays, opset)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    feeds = {n: arrays[n] for n in ("x", "r") if n == "x" or a.residual != "none"}
    return Reference(path).run(feeds)["y"]


def arrays_for(a: CbrAttributes, x: tuple[int, ...], channels: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    w = (channels, x[1] // a.group, *a.kernel_shape)
    shapes = {"x": x, "w": w, "b": (channels,), "r": output_shape(x, w, a)}
    return {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


# ONNX Runtime runs the function, so the newest is 24 at most, and 23 for 1.23.2, which has no 24.
@pytest.mark.parametrize("newest", [False, True], ids=["opset 9", "newest opset"])
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, "gelu by tanh"])
def test_the_function_computes_what_the_reference_says(tmp_path, activation, residual, newest):
    opset = min(24, newest_opset()) if newest else 9
    given = {"alpha": 1.0} if activation == "gelu by tanh" else {}
    a = attributes_of(activation.split()[0], residual, **given)
    arrays = arrays_for(a, (2, 4, 6, 5), 3)
    expected = reference(*(arrays[n] for n in "xwbr"), a)
    got = run(a, arrays, opset, tmp_path / "m.onnx")
    assert expected.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


geometry = st.builds(
    CbrAttributes,
    kernel_shape=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 3)] * 4),
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    group=st.sampled_from([1, 2, 4]),
    activation=st.sampled_from(["none", "relu"]),
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(geometry)
def test_every_geometry_agrees_with_onnx_runtime(tmp_path_factory, a):
    arrays = arrays_for(a, (1, 4, 11, 9), 8)
    expected = reference(arrays["x"], arrays["w"], arrays["b"], None, a)
    got = run(a, arrays, 17, tmp_path_factory.mktemp("g") / "m.onnx")
    assert got.shape == output_shape((1, 4, 11, 9), arrays["w"].shape, a)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


@given(geometry)
def test_a_node_holds_its_attributes(a):
    node = make_node(a, ["x", "w", "b"], "y", "n")
    assert read_node(node) == a
    fields = {f.name for f in dataclasses.fields(CbrAttributes)}
    assert {n.name for n in node.attribute} == fields | {"plugin_namespace", "plugin_version"}


def test_symbolic_sizes_are_kept_where_they_stay():
    same = CbrAttributes(kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    halved = CbrAttributes(kernel_shape=(3, 3), pads=(1, 1, 1, 1), strides=(1, 2))
    assert output_shape(("N", 4, "H", None), (8, 4, 3, 3), same) == ("N", 8, "H", None)
    assert output_shape(("N", "C", "H", "W"), (8, 4, 3, 3), halved) == ("N", 8, "H", None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"activation": "swish"}, "activation 'swish'"),
        ({"residual": "before"}, "residual 'before'"),
        ({"strides": (0, 1)}, r"strides \[0, 1\]"),
        ({"pads": (1, 1)}, r"pads \[1, 1\]: 4 values"),
        ({"group": 0}, "group 0"),
    ],
)
def test_what_no_op_can_be_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        CbrAttributes(**{"kernel_shape": (3, 3), **given})


@pytest.mark.parametrize(
    ("x", "w", "words"),
    [
        ((1, 4, 9), (8, 4, 3, 3), "4 axes"),
        ((1, 4, 9, 9), (8, 4, 3, 1), "kernel_shape"),
        ((1, 5, 9, 9), (8, 4, 3, 3), "5 channels"),
        ((1, 4, 2, 9), (8, 4, 3, 3), "does not fit 2 pixels"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(x, w, words):
    with pytest.raises(ValueError, match=words):
        output_shape(x, w, CbrAttributes(kernel_shape=(3, 3)))


def test_overloads_of_unlike_configurations_have_unlike_names():
    kinds = [attributes_of(k, r) for k in ACTIVATIONS for r in RESIDUALS]
    kinds += [
        attributes_of("clip", min=0.0, max=6.0),
        attributes_of("clip", min=0.0),
        attributes_of("clip", max=0.0, min=-6.0),
        attributes_of("gelu", alpha=1.0),
        attributes_of("relu", pads=(1, 0, 1, 0)),
    ]
    names = [overload_name(a, t) for a in kinds for t in ("float", "float16")]
    assert len(set(names)) == len(names)


def test_a_missing_residual_is_refused():
    with pytest.raises(ValueError, match="3 inputs with residual before_activation; 4 wanted"):
        make_node(attributes_of("relu", "before_activation"), ["x", "w", "b"], "y", "n")
