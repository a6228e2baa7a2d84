"""ONNX Runtime as the reference, its faults in our words."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper

from tests.rewrite.graphs import Builder, rewrite, save
from trtplug.errors import BackendMissingError, ReferenceFailedError
from trtplug.measure.equality import EXACT, compare_models, worst
from trtplug.measure.reference import Reference, overload_notice, random_feeds
from trtplug.model.load import load_model
from trtplug.model.widen import has_bfloat16, widen
from trtplug.tensor import TensorSpec


def model(dtype=np.float32, elem_type=TensorProto.FLOAT, opset=17):
    b = Builder(opset=opset, dtype=dtype)
    return b.model(b.add("Relu", b.conv("x", 4, 4)), elem_type=elem_type)


def test_outputs_by_name(tmp_path):
    outputs = Reference(save(model(), tmp_path)).run({"x": np.ones((1, 4, 9, 7), np.float32)})
    assert {n: a.shape for n, a in outputs.items()} == {"t1": (1, 4, 9, 7)}


def test_a_file_that_it_cannot_load(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    with pytest.raises(ReferenceFailedError, match=r"m\.onnx"):
        Reference(tmp_path / "m.onnx")


def test_an_input_that_does_not_fit(tmp_path):
    with pytest.raises(ReferenceFailedError, match="cannot run"):
        Reference(save(model(), tmp_path)).run({"x": np.ones((1, 5, 9, 7), np.float32)})


def test_a_machine_without_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(BackendMissingError) as caught:
        Reference(save(model(), tmp_path))
    assert "trtplug[check]" in caught.value.hint


def test_feeds_come_from_the_seed_alone():
    specs = [TensorSpec(name=n, dtype=t, shape=(2, None)) for n, t in
             (("a", "float"), ("b", "int64"), ("c", "bool"), ("d", "float16"))]  # fmt: skip
    sizes = {spec.name: (2, 3) for spec in specs}
    one, two = random_feeds(specs, sizes, 1), random_feeds(specs, sizes, 1)
    assert [a.dtype.name for a in one.values()] == ["float32", "int64", "bool", "float16"]
    assert all(np.array_equal(one[n], two[n]) for n in one)
    assert not np.array_equal(one["a"], random_feeds(specs, sizes, 2)["a"])
    assert set(np.unique(one["b"])) <= {0, 1}


def test_a_type_that_numpy_has_not_is_named():
    spec = TensorSpec(name="a", dtype="string", shape=(1,))
    with pytest.raises(ReferenceFailedError, match="'a' is of type string"):
        random_feeds([spec], {"a": (1,)}, 0)


def old_runtime(monkeypatch, given):
    """The installed ONNX Runtime calls itself 1.26.0; what it is given to run goes into `given`."""
    import onnxruntime

    def session(model, *args, **kwargs):
        given.append(model)
        return made(model, *args, **kwargs)

    made = onnxruntime.InferenceSession
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    monkeypatch.setattr(onnxruntime, "__version__", "1.26.0")


@pytest.mark.parametrize("external", [False, True])
def test_overloads_are_inlined_for_a_runtime_that_ignores_them(tmp_path, monkeypatch, external):
    b = Builder()
    proto = b.model(b.add("Relu", b.add("Add", b.conv("x", 4, 4), b.conv("x", 4, 4))))
    if external:
        external_data_helper.convert_model_to_external_data(proto, size_threshold=0)
    onnx.save(proto, tmp_path / "m.onnx")
    _, out = rewrite(tmp_path / "m.onnx")
    assert len(onnx.load(out).functions) == 2
    given: list[str | bytes] = []
    old_runtime(monkeypatch, given)
    monkeypatch.chdir(tmp_path)
    source, made = Path("m.onnx"), Path(out.name)
    trials = compare_models(source, made, load_model(source).inputs, [{"x": (1, 4, 9, 7)}])
    assert all(o.within(EXACT) for t in trials for o in t.outputs)
    assert given[0] == "m.onnx"
    inlined = onnx.load_from_string(given[1])
    assert [n.op_type for n in inlined.graph.node] == ["Conv", "Conv", "Add", "Relu"]
    outside = {w.data_location == TensorProto.EXTERNAL for w in inlined.graph.initializer}
    assert outside == {external}
    assert "1.26.0 ignores the overloads of functions" in overload_notice(made)
    assert overload_notice(source) is None


def test_a_bfloat16_model_is_widened_and_inlined(tmp_path, monkeypatch):
    import ml_dtypes

    path = save(model(ml_dtypes.bfloat16, TensorProto.BFLOAT16, opset=22), tmp_path)
    _, out = rewrite(path)
    given: list[str | bytes] = []
    old_runtime(monkeypatch, given)
    Reference(out).run({"x": np.ones((1, 4, 9, 7), np.float32)})
    ran = onnx.load_from_string(given[0])
    assert not has_bfloat16(ran)
    assert not ran.functions


@pytest.mark.parametrize("version", ["1.27.0", "1.32.0", "2.0.0", "1.28.0.dev20261101"])
def test_a_runtime_that_knows_overloads_gets_the_file(tmp_path, monkeypatch, version):
    _, out = rewrite(save(model(), tmp_path))
    given: list[str | bytes] = []
    old_runtime(monkeypatch, given)
    monkeypatch.setattr("onnxruntime.__version__", version)
    Reference(out)
    assert given == [str(out)]
    assert overload_notice(out) is None


@pytest.mark.parametrize("external", [False, True])
def test_a_bfloat16_model_is_run_as_a_float32_copy(tmp_path, external):
    import ml_dtypes

    wide = model(ml_dtypes.bfloat16, TensorProto.BFLOAT16, opset=22)
    assert has_bfloat16(wide)
    path = tmp_path / "m.onnx"
    if external:
        external_data_helper.convert_model_to_external_data(wide, size_threshold=0)
    onnx.save(wide, path)
    result, out = rewrite(path)
    assert result.sites[0].dtype == "bfloat16"
    trials = compare_models(path, out, load_model(path).inputs, [{"x": (1, 4, 9, 7)}])
    assert all(o.within(EXACT) for t in trials for o in t.outputs)
    copy = widen(onnx.load(out, load_external_data=False), tmp_path)
    assert not has_bfloat16(copy)


def test_the_worst_output_is_the_one_that_is_furthest(tmp_path):
    path = save(model(), tmp_path)
    other = onnx.load(path)
    other.graph.node[1].op_type = "Sigmoid"
    (tmp_path / "o.onnx").write_bytes(other.SerializeToString())
    trials = compare_models(
        path, tmp_path / "o.onnx", load_model(path).inputs, [{"x": (1, 4, 9, 7)}]
    )
    trial, found = worst(trials)
    assert found.max_relative == max(o.max_relative for t in trials for o in t.outputs)
    assert trial.seed in (0, 1, 2)
    assert not found.within(EXACT)
