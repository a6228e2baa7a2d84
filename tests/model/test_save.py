"""Models written piece by piece: one message, external data kept external, nothing left over."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper

from tests.real_models import light_model, ppocr_model
from tests.rewrite.graphs import Builder, prove, rewrite
from trtplug.errors import OutputError, OutputInTheWayError
from trtplug.model import save as save_module
from trtplug.model.load import load_model
from trtplug.model.save import ModelParts, NewTensor, parts_of, save_model


@pytest.mark.parametrize("path", [ppocr_model("cls"), light_model("resnet50")])
def test_a_model_written_in_parts_is_the_same_message(tmp_path, path):
    model = onnx.load(path)
    save_model(parts_of(model, path.parent), tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == model
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_metadata_and_words_are_kept(tmp_path):
    b = Builder()
    y = b.add("Relu", b.conv("x", 4, 4))
    model = b.model(y, {"x": ("N", 4, "H", 7)}, doc_string="graph words")
    model.doc_string, model.domain, model.model_version = "words", "org", 7
    model.metadata_props.add(key="k", value="v")
    model.graph.node[1].doc_string = "node words"
    result = prove(model, tmp_path, ((1, 4, 9, 7),))
    made = result.parts.to_proto()
    for field in ("doc_string", "domain", "model_version", "producer_name", "opset_import"):
        assert field == "opset_import" or getattr(made, field) == getattr(model, field)
    assert made.metadata_props == model.metadata_props
    assert (made.graph.doc_string, made.graph.input, made.graph.output) == (
        "graph words", model.graph.input, model.graph.output,
    )  # fmt: skip
    assert made.opset_import[0] == model.opset_import[0]


def with_external(tmp_path: Path) -> Path:
    b = Builder()
    y = b.add("Relu", b.batch_norm(b.conv("x", 4, 4), 4))
    model = b.model(b.add("Sigmoid", b.conv(y, 4, 4)))
    folder = tmp_path / "deep" / "models"
    folder.mkdir(parents=True)
    external_data_helper.convert_model_to_external_data(
        model, all_tensors_to_one_file=True, location="weights.bin", size_threshold=0
    )
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


def test_external_data_stay_external_and_the_original_is_untouched(tmp_path, monkeypatch):
    source = with_external(tmp_path)
    before = {p: hashlib.sha256(p.read_bytes()).hexdigest() for p in source.parent.iterdir()}
    elsewhere, third = tmp_path / "elsewhere", tmp_path / "third"
    elsewhere.mkdir(), third.mkdir()
    monkeypatch.chdir(elsewhere)
    relative = Path(os.path.relpath(source, elsewhere))
    _, out = rewrite(relative)
    for name in ("rewritten.onnx", "rewritten.onnx.data"):
        out.with_name(name).replace(third / name)
    assert {
        p: hashlib.sha256(p.read_bytes()).hexdigest() for p in source.parent.iterdir()
    } == before
    monkeypatch.chdir(tmp_path)
    made = onnx.load(third / "rewritten.onnx", load_external_data=False)
    external = {t.name for t in made.graph.initializer if t.data_location == TensorProto.EXTERNAL}
    # The bias that the batch norm made replaces external data too; weight w6 is copied as it was.
    assert external == {t.name for t in made.graph.initializer} >= {"w6", "n0.weight", "n0.bias"}
    from trtplug.measure.equality import EXACT, compare_models

    specs = load_model(source).inputs
    trials = compare_models(source, third / "rewritten.onnx", specs, [{"x": (2, 4, 9, 7)}])
    assert all(o.within(EXACT) for t in trials for o in t.outputs)


def test_the_models_own_data_file_is_never_replaced(tmp_path):
    source = with_external(tmp_path)
    data = source.with_name("weights.bin")
    data.rename(source.with_name("out.onnx.data"))
    model = onnx.load(source, load_external_data=False)
    for tensor in model.graph.initializer:
        entry = next(e for e in tensor.external_data if e.key == "location")
        entry.value = "out.onnx.data"
    source.write_bytes(model.SerializeToString())
    before = source.with_name("out.onnx.data").read_bytes()
    loaded = load_model(source)
    with pytest.raises(OutputInTheWayError, match="own weights"):
        save_model(parts_of(loaded.proto, source.parent), source.with_name("out.onnx"))
    assert source.with_name("out.onnx.data").read_bytes() == before
    assert sorted(p.name for p in source.parent.iterdir()) == ["m.onnx", "out.onnx.data"]


def parts_with(tensor: NewTensor, tmp_path: Path) -> ModelParts:
    b = Builder()
    model = b.model(b.add("Relu", "x"))
    parts = parts_of(model, tmp_path)
    return ModelParts(
        head=parts.head,
        graph=parts.graph,
        nodes=parts.nodes,
        tensors=(tensor,),
        folder=tmp_path,
    )


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize(("elem_type", "dims"), [(1, (3, 2)), (10, (5,)), (16, (2, 2)), (1, ())])
def test_new_tensors_are_made_when_written(tmp_path, elem_type, dims, external):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
    values = np.arange(int(np.prod(dims))).reshape(dims).astype(dtype)
    tensor = NewTensor(
        name="t", dims=dims, elem_type=elem_type, make=lambda: values, external=external
    )
    save_model(parts_with(tensor, tmp_path), tmp_path / "m.onnx")
    made = onnx.load(tmp_path / "m.onnx").graph.initializer[0]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(made), values)
    assert (tmp_path / "m.onnx.data").exists() == external


def test_what_outgrows_one_file_gets_external_data(tmp_path, monkeypatch):
    monkeypatch.setattr(save_module, "LARGEST_FILE", 1 << 21)
    b = Builder()
    big = b.add("Add", "x", b.normal(1, 4, 500, 500))
    model = b.model(big, {"x": (1, 4, 500, 500)})
    save_model(parts_of(model, tmp_path), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 1 << 20
    assert onnx.load(tmp_path / "m.onnx").graph.initializer[0].raw_data == (
        model.graph.initializer[0].raw_data
    )


def test_a_folder_that_is_not_there_leaves_nothing(tmp_path):
    parts = parts_of(onnx.load(ppocr_model("cls")), tmp_path)
    with pytest.raises(OutputError, match="No such file"):
        save_model(parts, tmp_path / "none" / "m.onnx")


def test_a_tensor_that_fails_leaves_nothing(tmp_path):
    def fail() -> np.ndarray:
        raise OSError(28, "No space left on device")

    tensor = NewTensor(name="t", dims=(2,), elem_type=1, make=fail, external=False)
    with pytest.raises(OutputError, match="No space left"):
        save_model(parts_with(tensor, tmp_path), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
