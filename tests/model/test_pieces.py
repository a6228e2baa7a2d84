"""A large file parsed in pieces is the same message, and fails as protobuf fails."""

from __future__ import annotations

import hashlib

import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.real_models import LIGHT, light_model, ppocr_model
from trtplug.model import load as load_module
from trtplug.model.load import load_model
from trtplug.model.pieces import parse_in_pieces


@pytest.mark.parametrize("path", [ppocr_model("det"), *(light_model(n) for n in LIGHT[:4])])
def test_real_models(path):
    model, sha256 = parse_in_pieces(path)
    assert model == onnx.load(path)
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


SMALL = light_model("zfnet512").read_bytes()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(0, 255)), max_size=4),
       st.integers(0, len(SMALL)))  # fmt: skip
def test_damaged_files_fail_where_protobuf_fails(tmp_path_factory, changes, length):
    data = bytearray(SMALL)
    for place, value in changes:
        data[place] = value
    path = tmp_path_factory.mktemp("p") / "m.onnx"
    path.write_bytes(data[: length or None])
    try:
        expected = onnx.ModelProto.FromString(path.read_bytes())
    except DecodeError:
        with pytest.raises(DecodeError):
            parse_in_pieces(path)
        return
    assert parse_in_pieces(path)[0] == expected


def test_large_files_are_loaded_that_way(monkeypatch):
    path = ppocr_model("cls")
    plain = load_model(path)
    monkeypatch.setattr(load_module, "LARGE_BYTES", 1)
    assert load_model(path) == plain
