"""Model files: loaded, or refused by name before any builder starts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import TensorProto, helper

from tests.models import conv_relu, model_of, save
from trtplug.errors import BAD_INPUT, ModelInvalidError, TrtplugError
from trtplug.model.load import load_model
from trtplug.tensor import TensorSpec, dtype_name

if TYPE_CHECKING:
    from pathlib import Path


def refused(path: Path) -> ModelInvalidError:
    with pytest.raises(ModelInvalidError) as caught:
        load_model(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_status == BAD_INPUT
    return caught.value


def test_inputs_are_what_the_user_feeds(tmp_path: Path):
    listed = save(conv_relu(ir_version=3, opset=9, weights_as_inputs=True), tmp_path / "m.onnx")
    model = load_model(listed)
    assert model.inputs == (TensorSpec(name="x", dtype="float", shape=(1, 3, 16, 16)),)
    assert [o.name for o in model.outputs] == ["y"]
    assert (model.opset, model.ir_version) == (9, 3)


@pytest.mark.parametrize("opset", range(9, 23))
def test_opset_is_read(tmp_path: Path, opset: int):
    assert load_model(save(conv_relu(opset=opset), tmp_path / "m.onnx")).opset == opset


def test_dynamic_axes_keep_their_names_and_odd_sizes_are_dynamic(tmp_path: Path):
    proto = conv_relu(shape=("N", 3, "?", "W"))
    dims = proto.graph.input[0].type.tensor_type.shape.dim
    dims[3].dim_value = -1
    dims[2].dim_param = ""
    model = load_model(save(proto, tmp_path / "m.onnx"))
    assert model.inputs[0].shape == ("N", 3, None, None)
    assert model.inputs[0].is_dynamic


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"hello world, this is no model\n", "not an ONNX protobuf"),
        (b"PK\x03\x04" + bytes(60), "not an ONNX protobuf"),
        (b"\0" * 100, "not an ONNX protobuf"),
        (b"\x08\x07", "holds no graph"),
        (onnx.ModelProto(graph=onnx.GraphProto(name="g")).SerializeToString(), "no outputs"),
    ],
)
def test_no_model_is_refused(tmp_path: Path, data: bytes, words: str):
    (tmp_path / "m.onnx").write_bytes(data)
    assert words in refused(tmp_path / "m.onnx").message


def test_truncated_at_any_byte_is_refused_or_still_a_model(tmp_path: Path):
    data = conv_relu().SerializeToString()
    file = tmp_path / "m.onnx"
    for end in range(0, len(data), 7):
        file.write_bytes(data[:end])
        assert refused(file).hint or end == 0


def test_model_without_the_standard_opset_is_refused(tmp_path: Path):
    proto = conv_relu()
    proto.opset_import[0].domain = "com.example"
    assert "standard operator set" in refused(save(proto, tmp_path / "m.onnx")).message


@pytest.mark.parametrize("opset", [0, -1, 1000, 2**31, 2**62])
def test_version_that_no_operator_set_has_is_refused(tmp_path: Path, opset: int):
    message = refused(save(conv_relu(opset=opset), tmp_path / "m.onnx")).message
    assert f"version {opset} of the standard operator set" in message


def test_inputs_that_are_no_tensors_are_refused(tmp_path: Path):
    proto = conv_relu()
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    proto.graph.input[0].type.CopyFrom(kind)
    assert "'x' is a sequence, not a tensor" in refused(save(proto, tmp_path / "m.onnx")).message


def test_input_of_unknown_rank_is_refused_and_a_scalar_is_not(tmp_path: Path):
    proto = model_of([helper.make_node("Relu", ["x"], ["y"])], inputs={"x": ()}, outputs={"y": ()})
    assert load_model(save(proto, tmp_path / "scalar.onnx")).inputs[0].shape == ()
    proto.graph.input[0].type.tensor_type.ClearField("shape")
    message = refused(save(proto, tmp_path / "m.onnx")).message
    assert "input 'x' has no shape" in message


def test_mutated_files_load_or_are_refused(tmp_path: Path):
    data = conv_relu().SerializeToString()
    dice = random.Random(7)
    statuses = set()
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(dice.randrange(1, 5)):
            changed[dice.randrange(len(changed))] = dice.randrange(256)
        (tmp_path / "m.onnx").write_bytes(changed)
        try:
            load_model(tmp_path / "m.onnx")
        except TrtplugError as error:
            statuses.add(error.exit_status)
    assert statuses == {BAD_INPUT}


def test_types_by_name():
    assert dtype_name(TensorProto.FLOAT16) == "float16"
    assert dtype_name(999) == "undefined"
