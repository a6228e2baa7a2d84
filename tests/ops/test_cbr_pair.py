"""The pair against ONNX Runtime's own convolutions, and its shapes, attributes and function."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from tests.ops.test_cbr import PARAMETERS
from tests.runtime import newest_opset
from trtplug.measure.reference import Reference
from trtplug.ops import cbr
from trtplug.ops.cbr import ACTIVATIONS, DOMAIN, RESIDUALS, VERSION, CbrAttributes
from trtplug.ops.cbr_pair import (
    CbrPairAttributes,
    attribute_names,
    make_function,
    make_node,
    output_shape,
    overload_name,
    read_node,
    reference,
)

INPUTS = ("x", "w", "b", "v", "c")


def attributes_of(activation="relu", residual="none", channels=4, **geometry) -> CbrPairAttributes:
    parameters = PARAMETERS.get(activation, {})
    return CbrPairAttributes(
        depthwise=CbrAttributes(
            **{"kernel_shape": (3, 3), **geometry},
            group=channels,
            activation=activation,
            **parameters,
        ),
        pointwise=CbrAttributes(
            kernel_shape=(1, 1), activation=activation, residual=residual, **parameters
        ),
    )


def arrays_for(a: CbrPairAttributes, x: tuple[int, ...], outputs: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    w, v = (x[1], 1, *a.depthwise.kernel_shape), (outputs, x[1], 1, 1)
    shapes = {"x": x, "w": w, "b": x[1:2], "v": v, "c": (outputs,)}
    shapes["r"] = output_shape(x, w, v, a)
    return {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def run(a: CbrPairAttributes, arrays: dict[str, np.ndarray], opset: int, path) -> np.ndarray:
    inputs = [*INPUTS, *(["r"] if a.pointwise.residual != "none" else [])]
    fed = ["x", *inputs[5:]]
    graph = helper.make_graph(
        [make_node(a, inputs, "y", "pair", overload_name(a, "float"))],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, arrays[n].shape) for n in fed],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(arrays[n], n) for n in INPUTS[1:]],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[make_function(a, "float", opset)],
        ir_version=10,
    )
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString())
    return Reference(path).run({n: arrays[n] for n in fed})["y"]


def expected_of(a: CbrPairAttributes, arrays: dict[str, np.ndarray]) -> np.ndarray:
    x, w, b, v, c, r = (arrays[n] for n in (*INPUTS, "r"))
    return reference(x, (w, v), (b, c), r, a)


# As in test_cbr.py.
@pytest.mark.parametrize("newest", [False, True], ids=["opset 9", "newest opset"])
@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_function_computes_what_the_reference_says(tmp_path, activation, residual, newest):
    opset = min(24, newest_opset()) if newest else 9
    a = attributes_of(activation, residual)
    arrays = arrays_for(a, (2, 4, 6, 5), 3)
    expected = expected_of(a, arrays)
    got = run(a, arrays, opset, tmp_path / "m.onnx")
    assert expected.dtype == np.float64
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


geometry = st.fixed_dictionaries(
    {
        "kernel_shape": st.tuples(st.integers(1, 4), st.integers(1, 4)),
        "strides": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "pads": st.tuples(*[st.integers(0, 3)] * 4),
        "dilations": st.tuples(st.integers(1, 2), st.integers(1, 2)),
    }
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(geometry)
def test_every_geometry_agrees_with_onnx_runtime(tmp_path_factory, values):
    a = attributes_of("relu", channels=5, **values)
    arrays = arrays_for(a, (1, 5, 11, 9), 7)
    got = run(a, arrays, 17, tmp_path_factory.mktemp("g") / "m.onnx")
    expected = expected_of(a, arrays)
    assert got.shape == expected.shape == arrays["r"].shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max()))


@given(geometry, st.sampled_from(ACTIVATIONS), st.sampled_from(RESIDUALS))
def test_a_node_holds_its_attributes(values, activation, residual):
    a = attributes_of(activation, residual, **values)
    names = list("xwbvc") + (["r"] if residual != "none" else [])
    node = make_node(a, names, "y", "n")
    assert read_node(node) == a
    assert tuple(n.name for n in node.attribute) == attribute_names()


def test_it_is_two_cbrs_in_a_row():
    a = attributes_of("silu", "after_activation")
    arrays = arrays_for(a, (1, 4, 6, 5), 3)
    between = cbr.reference(arrays["x"], arrays["w"], arrays["b"], None, a.depthwise)
    last = cbr.reference(between, arrays["v"], arrays["c"], arrays["r"], a.pointwise)
    np.testing.assert_array_equal(expected_of(a, arrays), last)


def test_symbolic_sizes_are_kept_where_they_stay():
    same = attributes_of(pads=(1, 1, 1, 1))
    assert output_shape(("N", 4, "H", 5), (4, 1, 3, 3), (7, 4, 1, 1), same) == ("N", 7, "H", 5)


DEPTHWISE = CbrAttributes(kernel_shape=(3, 3), group=4)
POINTWISE = CbrAttributes(kernel_shape=(1, 1))


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (CbrAttributes(kernel_shape=(3, 3), residual="after_activation"), POINTWISE, "between"),
        (DEPTHWISE, DEPTHWISE, "not 1x1"),
        (DEPTHWISE, CbrAttributes(kernel_shape=(1, 1), strides=(2, 1)), "not 1x1"),
        (DEPTHWISE, CbrAttributes(kernel_shape=(1, 1), pads=(0, 0, 0, 1)), "not 1x1"),
        (DEPTHWISE, CbrAttributes(kernel_shape=(1, 1), group=2), "not 1x1"),
    ],
)
def test_what_no_pair_can_be_is_refused(first, second, words):
    with pytest.raises(ValueError, match=words):
        CbrPairAttributes(depthwise=first, pointwise=second)


def test_weights_that_are_not_depthwise_are_refused():
    a = attributes_of()
    with pytest.raises(ValueError, match="not depthwise"):
        output_shape((1, 4, 9, 9), (8, 1, 3, 3), (7, 8, 1, 1), a)


def test_nodes_of_another_kind_and_missing_inputs_are_refused():
    a = attributes_of(residual="before_activation")
    with pytest.raises(ValueError, match="5 inputs with residual before_activation; 6 wanted"):
        make_node(a, list("xwbvc"), "y", "n")
    with pytest.raises(ValueError, match="is no trtplug::CBRPair"):
        read_node(cbr.make_node(POINTWISE, list("xwb"), "y", "n"))


def test_overloads_of_unlike_configurations_have_unlike_names():
    kinds = [attributes_of(k, r) for k in ACTIVATIONS for r in RESIDUALS]
    kinds += [attributes_of(pads=(1, 0, 1, 0)), attributes_of(channels=5)]
    names = [overload_name(a, t) for a in kinds for t in ("float", "float16")]
    assert len(set(names)) == len(names)
