"""`--precision`: engines that FP32 cannot give, and requests that would change nothing."""

from __future__ import annotations

import json

import pytest

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
