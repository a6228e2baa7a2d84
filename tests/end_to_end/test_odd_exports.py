"""Old and odd exports build; their names are safe in every report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_here
from tests.models import conv_chain, conv_relu, model_of, save
from tests.real_models import ppocr_model

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

pytestmark = pytest.mark.rtx


def build(folder: Path, proto: onnx.ModelProto, *arguments: str) -> dict:
    """Builds for sm_89; the report."""
    model = save(proto, folder / "m.onnx")
    out = folder / "out"
    ran = run_here("build", model, "--target", "sm_89", "--out", out, *arguments)
    assert ran.status == 0, ran.err
    return json.loads((out / "sm_89/report.json").read_text())


def nodes_in_layers(report: dict) -> set[str]:
    return {node for layer in report["layers"] for node in layer["onnx_nodes"]}


@pytest.mark.parametrize("opset", [9, 11, 13, 16, 19, 22])
def test_opsets(tmp_path: Path, opset: int):
    assert "conv0" in nodes_in_layers(build(tmp_path, conv_relu(opset=opset)))


def test_weights_listed_as_graph_inputs(tmp_path: Path):
    report = build(tmp_path, conv_relu(ir_version=3, opset=9, weights_as_inputs=True))
    assert "conv0" in nodes_in_layers(report)
    assert [s["name"] for s in report["shapes"]] == ["x"]


@pytest.mark.parametrize("shape", ["1x3x48x192", "1x3x32x96:1x3x48x192:1x3x64x320"])
def test_axes_that_are_all_called_the_same(tmp_path: Path, shape: str):
    out = tmp_path / "out"
    arguments = ("--target", "sm_89", "--shape", f"x={shape}", "--out", out)
    ran = run_here("build", ppocr_model("cls"), *arguments)
    assert ran.status == 0, ran.err
    warnings = json.loads((out / "sm_89/report.json").read_text())["warnings"]
    assert any("'?'" in w for w in warnings)


@pytest.mark.parametrize(("conv", "relu"), [("", ""), ("n", "n"), ("", "n"), ("y", "y")])
def test_empty_and_double_names(tmp_path: Path, conv: str, relu: str):
    report = build(tmp_path, conv_relu(conv_name=conv, activation_name=relu))
    (site,) = report["sites"]
    assert site["outcome"] == "native_fused"
    assert set(site["nodes"]) <= nodes_in_layers(report)


def test_nodes_out_of_order(tmp_path: Path):
    proto = conv_chain(3)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    assert {"conv0", "conv1", "conv2"} <= nodes_in_layers(build(tmp_path, proto))


@pytest.mark.parametrize("name", ["a/b", "images:0", "a/b:c=d", "x y", "<script>"])
def test_input_names(tmp_path: Path, name: str):
    proto = conv_relu(input_name=name, shape=("N", 3, 8, 8))
    report = build(tmp_path, proto, "--shape", f"{name}=1x3x8x8:2x3x8x8:4x3x8x8")
    assert [s["name"] for s in report["shapes"]] == [name]


HOSTILE = "<script>alert(1)</script>|`[x](javascript:x)\n, Name: "


def test_names_are_escaped_in_html_and_markdown(tmp_path: Path):
    report = build(tmp_path, conv_relu(conv_name=HOSTILE))
    assert HOSTILE in nodes_in_layers(report)
    html = (tmp_path / "out/sm_89/report.html").read_text()
    assert "<script>alert" not in html
    ran = run_here(
        "build", tmp_path / "m.onnx", "--target", "sm_89", "--out", tmp_path / "again",
        "--format", "markdown",
    )  # fmt: skip
    assert ran.status == 0
    assert "<script>" not in ran.out
    rows = [line for line in ran.out.splitlines() if "alert(1)" in line]
    assert rows
    assert all(line.count("`[x]") == 0 or "\\" in line for line in rows)


def test_batch_norm_in_training_mode_is_refused_by_name_with_advice(tmp_path: Path):
    import numpy as np
    from onnx import helper

    node = helper.make_node("BatchNormalization", list("xsbmv"), ["y"], name="bn0", training_mode=1)
    shape = (1, 3, 4, 4)
    proto = model_of(
        [node], inputs={"x": shape}, outputs={"y": shape},
        weights=dict.fromkeys("sbmv", np.ones(3, np.float32)),
    )  # fmt: skip
    model = save(proto, tmp_path / "m.onnx")
    ran = run_here("build", model, "--target", "sm_89", "--out", tmp_path / "out")
    assert ran.status in (2, 3)
    assert "bn0" in ran.err
    assert "BatchNormalization" in ran.err
    assert "evaluation mode" in ran.err


def test_turing_without_fp32_gemm_fails_alone_and_asks_for_fp16(tmp_path: Path):
    from tests.real_models import light_model

    out = tmp_path / "out"
    arguments = ("--target", "sm_75", "--target", "sm_89", "--out", out)
    ran = run_here("build", light_model("resnet50"), *arguments)
    assert ran.status == 3
    manifest = json.loads((out / "manifest.json").read_text())
    assert [t["sm"] for t in manifest["targets"]] == ["sm_89"]
    (failure,) = manifest["failures"]
    assert "FP32 GEMM is not supported" in failure["message"]
    assert "--precision fp16" in failure["hint"]
    assert "--precision fp16" in ran.err
