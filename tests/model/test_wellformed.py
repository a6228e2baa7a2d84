"""Names that are no text and nodes without outputs are refused before anything looks at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from onnx import helper

from tests.models import conv_relu, model_of, save
from trtplug.errors import BAD_INPUT, ModelInvalidError
from trtplug.model.load import load_model

if TYPE_CHECKING:
    from pathlib import Path


def refused(path: Path) -> str:
    with pytest.raises(ModelInvalidError) as caught:
        load_model(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_status == BAD_INPUT
    return caught.value.message


@pytest.mark.parametrize("name", [b"conv0", b"relu0", b"conv0_out", b"w0", b"Conv", b"tiny"])
def test_name_that_is_not_utf8_is_refused(tmp_path: Path, name: bytes):
    data = conv_relu().SerializeToString()
    assert name in data
    (tmp_path / "m.onnx").write_bytes(data.replace(name, name[:-1] + b"\xff"))
    assert "not UTF-8" in refused(tmp_path / "m.onnx")


def test_name_in_a_subgraph_that_is_not_utf8_is_refused(tmp_path: Path):
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["zq"], name="inner")], "g", [], [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    proto = model_of([node], inputs={"x": (1,), "c": (1,)}, outputs={"y": (1,)})
    data = proto.SerializeToString()
    (tmp_path / "m.onnx").write_bytes(data.replace(b"inner", b"\xffnner"))
    assert "not UTF-8" in refused(tmp_path / "m.onnx")


@pytest.mark.parametrize("where", ["graph", "subgraph", "function"])
def test_node_without_an_output_is_refused_by_name(tmp_path: Path, where: str):
    proto = conv_relu()
    bare = helper.make_node("Constant", [], [], name="bare", value_int=1)
    if where == "graph":
        proto.graph.node.append(bare)
    elif where == "subgraph":
        inner = helper.make_graph([bare], "inner", [], [])
        node = helper.make_node("If", ["x"], ["z"], then_branch=inner, else_branch=inner)
        proto.graph.node.append(node)
    else:
        opsets = list(proto.opset_import)
        proto.functions.append(helper.make_function("d", "f", [], [], [bare], opsets))
    assert "node 'bare' (Constant) has no output" in refused(save(proto, tmp_path / "m.onnx"))
