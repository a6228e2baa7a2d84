"""External data: checked by name against the file system, and never read from elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.models import conv_relu, model_of, save
from trtplug.errors import BAD_INPUT, ExternalDataError
from trtplug.model.load import load_model

if TYPE_CHECKING:
    from pathlib import Path

BYTES = 8 * 3 * 3 * 3 * 4


def with_external(folder: Path, data: bytes | None = bytes(BYTES), **entries: str) -> Path:
    """conv_relu with its weight w0 in a file of its own, `w.bin` unless said otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    proto = conv_relu()
    make_external(proto.graph.initializer[0], **{"location": "w.bin", **entries})
    if data is not None:
        (folder / "w.bin").write_bytes(data)
    return save(proto, folder / "m.onnx")


def make_external(tensor: onnx.TensorProto, **entries: str) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


def refused(path: Path) -> str:
    with pytest.raises(ExternalDataError) as caught:
        load_model(path)
    error = caught.value
    assert error.exit_status == BAD_INPUT
    assert str(path) in error.message
    assert repr(error.tensor) in error.message
    assert repr(error.location) in error.message
    return error.message


def test_whole_data_is_accepted_and_digested(tmp_path: Path):
    model = load_model(with_external(tmp_path))
    assert [f.location for f in model.external] == ["w.bin"]
    with_external(tmp_path, bytes([1]) + bytes(BYTES - 1))
    assert load_model(tmp_path / "m.onnx").sha256 != model.sha256


def test_offset_and_length(tmp_path: Path):
    path = with_external(tmp_path, bytes(4096 + BYTES), offset="4096", length=str(BYTES))
    assert load_model(path).external


def test_missing(tmp_path: Path):
    assert "there is no such file" in refused(with_external(tmp_path, None))


@pytest.mark.parametrize(
    ("data", "entries", "words"),
    [
        (bytes(BYTES - 1), {}, f"{BYTES - 1} bytes are there and {BYTES} are needed"),
        (b"", {}, "0 bytes are there"),
        (bytes(BYTES), {"offset": "1"}, f"{BYTES - 1} bytes are there"),
        (bytes(BYTES), {"offset": "1", "length": str(BYTES)}, f"needs {BYTES + 1}"),
        (bytes(BYTES), {"length": "4"}, "4 bytes are there"),
        (bytes(BYTES), {"length": str(2**62)}, "the tensor needs"),
        (bytes(BYTES), {"offset": str(2**62)}, "bytes are there"),
        (bytes(BYTES), {"offset": "-1"}, "no whole number"),
        (bytes(BYTES), {"length": "1e3"}, "no whole number"),
        (bytes(BYTES), {"length": "\u0663"}, "no whole number"),
        (bytes(BYTES), {"length": "9" * 5000}, "no whole number"),
    ],
)
def test_too_short_or_no_number(tmp_path: Path, data: bytes, entries, words: str):
    assert words in refused(with_external(tmp_path, data, **entries))


@pytest.mark.parametrize(
    "location",
    ["../w.bin", "a/../../w.bin", "/etc/hostname", "C:\\w.bin", "\\\\host\\w.bin", "", "w\0.bin"],
)
def test_outside_the_folder(tmp_path: Path, location: str):
    (tmp_path / "w.bin").write_bytes(bytes(BYTES))
    path = with_external(tmp_path / "model", location=location)
    assert "outside the model's folder, and is refused" in refused(path)


@pytest.mark.parametrize("link", ["file", "folder", "loop"])
def test_link_that_leads_outside(tmp_path: Path, link: str):
    (tmp_path / "away").mkdir()
    (tmp_path / "away/w.bin").write_bytes(bytes(BYTES))
    path = with_external(tmp_path / "model", None, location="l/w.bin" if link == "folder" else "l")
    target = {"file": "../away/w.bin", "folder": "../away", "loop": "l"}[link]
    (tmp_path / "model/l").symlink_to(target)
    assert "outside the model's folder" in refused(path)


def test_link_inside_the_folder_is_followed(tmp_path: Path):
    path = with_external(tmp_path, location="l")
    (tmp_path / "l").symlink_to("w.bin")
    assert load_model(path).external


@pytest.mark.parametrize("location", ["x" * 300, "x/" * 3000])
def test_location_too_long_for_the_system(tmp_path: Path, location: str):
    refused(with_external(tmp_path, location=location))


def test_no_regular_file_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in refused(with_external(tmp_path, location="fifo"))
    assert "not a regular file" in refused(with_external(tmp_path, location="."))


def test_folder_is_that_of_the_name_given_not_of_the_links_target(tmp_path: Path):
    real = with_external(tmp_path / "real")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/m.onnx").symlink_to(real)
    assert "there is no such file" in refused(tmp_path / "other/m.onnx")


@pytest.mark.parametrize("place", ["attribute", "subgraph", "function", "sparse"])
def test_tensors_in_every_place_are_looked_at(tmp_path: Path, place: str):
    tensor = numpy_helper.from_array(np.zeros(4, np.float32), "t")
    make_external(tensor, location="../secret")
    constant = helper.make_node("Constant", [], ["c"], value=tensor)
    proto = model_of([constant], inputs={"x": (4,)}, outputs={"c": (4,)})
    if place == "subgraph":
        inner = helper.make_graph([constant], "inner", [], [])
        node = helper.make_node("If", ["x"], ["c"], then_branch=inner, else_branch=inner)
        proto.graph.node[0].CopyFrom(node)
    elif place == "function":
        opsets = list(proto.opset_import)
        del proto.graph.node[:]
        proto.functions.add().CopyFrom(
            helper.make_function("d", "f", [], ["c"], [constant], opset_imports=opsets)
        )
    elif place == "sparse":
        del proto.graph.node[:]
        sparse = proto.graph.sparse_initializer.add()
        sparse.values.CopyFrom(tensor)
        sparse.dims.extend([9])
    assert "outside" in refused(save(proto, tmp_path / "m.onnx"))


@pytest.mark.parametrize(
    ("kind", "dims", "wanted"),
    [
        (TensorProto.FLOAT16, (3, 5), 30),
        (TensorProto.INT4, (3, 5), 8),
        (TensorProto.DOUBLE, (), 8),
        (TensorProto.INT64, (0, 5), 0),
    ],
)
def test_bytes_by_type(tmp_path: Path, kind: int, dims: tuple[int, ...], wanted: int):
    proto = conv_relu()
    tensor = proto.graph.initializer[0]
    tensor.data_type = kind
    del tensor.dims[:]
    tensor.dims.extend(dims)
    make_external(tensor, location="w.bin")
    path = save(proto, tmp_path / "m.onnx")
    (tmp_path / "w.bin").write_bytes(bytes(wanted))
    load_model(path)
    if wanted:
        (tmp_path / "w.bin").write_bytes(bytes(wanted - 1))
        assert f"{wanted} are needed" in refused(path)
