"""`--precision`: engines that FP32 cannot give, and requests that would change nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.models import conv_relu, matmul, save
from trtplug.cli.main import main

pytestmark = pytest.mark.rtx


def built(out):
    manifest = json.loads((out / "manifest.json").read_text())
    reports = [json.loads((out / t["sm"] / "report.json").read_text()) for t in manifest["targets"]]
    return manifest, reports


def test_turing_takes_a_matrix_product_in_fp16_only(tmp_path, capsys):
    model = str(save(matmul(), tmp_path / "m.onnx"))
    common = [model, "--target", "t4", "--target", "l4", "--out", str(tmp_path / "out")]
    assert main(["build", *common]) == 3
    assert "build with --precision fp16" in capsys.readouterr().err
    manifest, _ = built(tmp_path / "out")
    assert [t["sm"] for t in manifest["targets"]] == ["sm_89"]
    assert [f["target"] for f in manifest["failures"]] == ["rtx-1.7:sm_75"]

    assert main(["build", *common, "--precision", "fp16"]) == 0
    manifest, reports = built(tmp_path / "out")
    assert [t["sm"] for t in manifest["targets"]] == ["sm_75", "sm_89"]
    for report in reports:
        assert report["model"]["precision"] == "fp16"
        assert report["totals"]["layers_by_dtype"]["Half"] > 0
        assert [s["dtype"] for s in report["shapes"]] == ["float"]  # inputs keep their type
        assert report["flags"]["io_precision"] == "keep"


def test_what_is_kept_in_fp32_is_listed_with_its_reason(tmp_path):
    model = str(save(conv_relu(), tmp_path / "m.onnx"))
    common = [model, "--target", "sm_89", "--out", str(tmp_path / "out"), "--precision", "fp16"]
    assert main(["build", *common, "--io-precision", "match", "--keep-fp32", "relu*"]) == 0
    _, (report,) = built(tmp_path / "out")
    assert [i["node"] for i in report["islands"]] == ["relu0"]
    assert report["islands"][0]["reason"] == "--keep-fp32 relu*"
    assert report["shapes"][0]["dtype"] == "float16"
    assert "relu0" in (tmp_path / "out/sm_89/report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--precision", "fp8"], "'--precision': 'fp8' is not one of 'keep', 'fp16', 'bf16'"),
        (
            ["--precision", "fp16", "--io-precision", "half"],
            "'--io-precision': 'half' is not one of 'keep', 'match'",
        ),
        (["--precision", "fp16", "--keep-fp32", "*"], "error[precision]"),
        (["--precision", "fp16", "--keep-fp32", "nothing-like-it"], "nothing-like-it"),
    ],
)
def test_a_request_that_changes_nothing_is_an_error(arguments, words, tmp_path, capsys):
    model = str(save(conv_relu(), tmp_path / "m.onnx"))
    out = tmp_path / "out"
    assert main(["build", model, "--target", "sm_89", "--out", str(out), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("precision", ["keep", "fp16"])
def test_operations_are_those_of_the_model_or_the_report_says_what_is_missing(tmp_path, precision):
    """A 1x1 convolution that RTX makes a matrix product without ONNX names in FP16."""
    draw = np.random.default_rng(0)
    shapes = {"w0": (512, 512, 3, 3), "w1": (256, 512, 1, 1)}
    weights = [
        numpy_helper.from_array((draw.standard_normal(s) * 0.05).astype(np.float32), name)
        for name, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "c0", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["r"], "r0"),
        helper.make_node("Conv", ["r", "w1"], ["b"], "pw"),
        helper.make_node("AveragePool", ["b"], ["y"], "pool", kernel_shape=[7, 7], strides=[7, 7]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 512, 14, 14))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 256, 2, 2))],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path, out = save(model, tmp_path / "m.onnx"), tmp_path / "out"
    given = ("--target", "sm_89", "--out", str(out), "--precision", precision)
    assert main(["build", str(path), *given]) == 0
    report = json.loads((out / "sm_89/report.json").read_text())
    pointwise = 2 * 256 * 512 * 14 * 14
    named = {node for layer in report["layers"] for node in layer["onnx_nodes"]}
    told = [w for w in report["warnings"] if "named by no layer" in w]
    assert ("pw" in named) == (told == [])
    if told:
        assert f"{pointwise:,}" in told[0]
        assert told[0].endswith(": pw.")
        assert "reformat" not in {x["added"] for x in report["layers"] if x["constants"]}
    else:
        assert report["totals"]["flops"] > pointwise
