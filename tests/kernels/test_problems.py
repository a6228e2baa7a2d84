"""What kernels a model asks for."""

import pytest

from tests.models import conv_chain, conv_relu, save
from trtplug.errors import TrtplugError
from trtplug.kernels import problems
from trtplug.kernels.problems import read_problems
from trtplug.tensor import parse_shape_range


def read(path, *shapes, precision="keep"):
    return read_problems(path, tuple(map(parse_shape_range, shapes)), precision)


def test_equal_sites_are_one_problem(tmp_path):
    found = read(save(conv_chain(3), tmp_path / "m.onnx"))
    (asked,) = found.asked
    assert asked.sites == ("conv0", "conv1", "conv2")
    assert asked.problem.dtype == "float"
    assert asked.problem.attributes.activation == "relu"
    assert asked.problem.x.min == asked.problem.x.opt == asked.problem.x.max == (1, 16, 32, 32)
    assert found.unsized == ()
    assert found.sizes == {"x": (1, 16, 32, 32)}


@pytest.mark.parametrize(("precision", "dtype"), [("fp16", "float16"), ("bf16", "bfloat16")])
def test_kernels_are_asked_for_in_another_precision(tmp_path, precision, dtype):
    found = read(save(conv_relu(), tmp_path / "m.onnx"), precision=precision)
    assert {a.problem.dtype for a in found.asked} == {dtype}


def test_a_range_reaches_every_site(det):
    found = read(det, "x=1x3x64x64:2x3x96x64:4x3x96x64")
    assert found.sizes == {"x": (2, 3, 96, 64)}
    first = found.asked[0].problem
    assert (first.x.min, first.x.opt, first.x.max) == (
        (1, 3, 64, 64),
        (2, 3, 96, 64),
        (4, 3, 96, 64),
    )
    assert {"batch", "height"} == set(first.dynamic)
    assert all(a.problem.x.max[0] == 4 for a in found.asked)


def test_shapes_are_inferred_once_where_the_range_is_a_point(tmp_path, monkeypatch):
    calls = []
    real = problems.infer_shapes
    monkeypatch.setattr(problems, "infer_shapes", lambda *a: calls.append(a) or real(*a))
    path = save(conv_relu(shape=("n", 3, 16, 16)), tmp_path / "m.onnx")
    read(path, "x=2x3x16x16")
    assert len(calls) == 1
    read(path, "x=1x3x16x16:2x3x16x16:4x3x16x16")
    assert len(calls) == 4


def test_a_site_whose_size_depends_on_values_has_no_problem(tmp_path):
    import numpy as np
    from onnx import helper

    from tests.models import model_of, random_weight

    # Resize by sizes that are fed: nothing is known of what comes out.
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="nonzero0"),
        helper.make_node("Cast", ["where"], ["places"], name="cast0", to=1),
        helper.make_node("Unsqueeze", ["places", "axes"], ["image"], name="unsqueeze0"),
        helper.make_node("Conv", ["image", "w"], ["y"], name="conv0", pads=[1] * 4),
    ]
    weights = {"w": random_weight(8, 1, 3, 3), "axes": np.array([0, 1], np.int64)}
    model = model_of(nodes, inputs={"x": (4, 4)}, outputs={"y": (1, 8, 2, "m")}, weights=weights)
    found = read(save(model, tmp_path / "m.onnx"))
    assert found.asked == ()
    assert [(u.site, "image" in u.problem) for u in found.unsized] == [("conv0", True)]


def test_a_shape_that_does_not_fit_is_refused(det):
    with pytest.raises(TrtplugError):
        read(det, "nobody=1x3x64x64")
