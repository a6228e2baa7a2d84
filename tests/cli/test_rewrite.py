"""`trtplug rewrite`: the file, the proof, the precision, and what it refuses."""

from __future__ import annotations

import onnx
import pytest

from tests.real_models import LIGHT, light_model
from tests.rewrite.graphs import Builder, save
from trtplug.cli.main import main

SHAPES = {
    "det": "x=1x3x64x96:1x3x160x160:1x3x160x160",
    "rec": "x=1x3x48x96:2x3x48x160:2x3x48x160",
    "cls": "x=1x3x32x64:2x3x48x192:2x3x48x192",
}


@pytest.mark.parametrize("name", SHAPES)
def test_real_models_stay_equal(name, tmp_path, capsys, request):
    model, out = request.getfixturevalue(name), tmp_path / "out.onnx"
    assert main(["rewrite", str(model), "-o", str(out), "--check", "--shape", SHAPES[name]]) == 0
    assert "equal in 6 runs" in capsys.readouterr().out
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    assert "Conv" not in {n.op_type for n in made.graph.node}


@pytest.mark.parametrize(("name", "pairs"), [("det", 12), ("cls", 2)])
def test_pairs_stay_equal(name, pairs, tmp_path, capsys, request):
    model, out = request.getfixturevalue(name), tmp_path / "out.onnx"
    arguments = ["rewrite", str(model), "-o", str(out), "--pairs", "--check"]
    assert main([*arguments, "--shape", SHAPES[name]]) == 0
    said = capsys.readouterr().out
    assert f"{pairs} pairs among them" in said
    assert "equal in 6 runs" in said
    made = onnx.load(out)
    onnx.checker.check_model(made, full_check=True)
    assert [n.op_type for n in made.graph.node].count("CBRPair") == pairs


def test_pairs_in_float16_are_alike(cls, tmp_path, capsys):
    arguments = ["rewrite", str(cls), "-o", str(tmp_path / "out.onnx"), "--pairs", "--check"]
    assert main([*arguments, "--shape", SHAPES["cls"], "--precision", "fp16"]) == 0
    assert "cosine at least 0.999" in capsys.readouterr().out


# VGG-19 and AlexNet have no BatchNormalization and gigabytes of constant fill in their Gemms.
@pytest.mark.parametrize(
    "name", [n for n in LIGHT if n not in ("vgg19", "bvlc_alexnet", "zfnet512")]
)
def test_light_models_stay_equal(name, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    assert main(["rewrite", str(light_model(name)), "-o", str(out), "--check"]) == 0
    assert "equal in 3 runs" in capsys.readouterr().out


def test_a_check_says_when_it_ran_a_copy(tmp_path, capsys, monkeypatch):
    b = Builder()
    arguments = ["rewrite", str(save(b.model(b.conv("x", 4, 4)), tmp_path))]
    arguments += ["-o", str(tmp_path / "out.onnx"), "--check", "--shape", "x=2x4x9x7"]
    monkeypatch.setattr("onnxruntime.__version__", "1.26.0")
    assert main(arguments) == 0
    assert "run with its functions inlined by onnx" in capsys.readouterr().err
    monkeypatch.setattr("onnxruntime.__version__", "1.27.0")
    assert main(arguments) == 0
    assert "inlined" not in capsys.readouterr().err


def test_float16_is_alike(cls, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    arguments = ["rewrite", str(cls), "-o", str(out), "--check", "--shape", SHAPES["cls"]]
    assert main([*arguments, "--precision", "fp16"]) == 0
    captured = capsys.readouterr()
    assert "cosine at least 0.999" in captured.out
    assert "fp32: Softmax@0 (Softmax): sums of exponentials" in captured.err
    assert out.stat().st_size < 0.6 * cls.stat().st_size


def test_precision_alone(cls, tmp_path, capsys):
    out = tmp_path / "out.onnx"
    arguments = ["rewrite", str(cls), "-o", str(out), "--precision", "fp16", "--no-sites"]
    assert main([*arguments, "--io-precision", "match", "--keep-fp32", "Conv@1*"]) == 0
    made = onnx.load(out)
    assert "CBR" not in {n.op_type for n in made.graph.node}
    assert made.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert "--keep-fp32 Conv@1*" in capsys.readouterr().err


def test_a_check_that_fails_is_exit_1(tmp_path, capsys):
    # Five outputs of opset 9 are training mode to ONNX Runtime; the fold takes them for inference.
    b = Builder(opset=9)
    y = b.add("Relu", b.batch_norm(b.conv("x", 4, 4), 4, outputs=5))
    path = save(b.model(y, {"x": (1, 4, 9, 7)}), tmp_path)
    assert main(["rewrite", str(path), "-o", str(tmp_path / "out.onnx"), "--check"]) == 1
    captured = capsys.readouterr()
    assert "NOT EQUAL" in captured.out
    assert "without batch statistics" in captured.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--keep-fp32", "*"], "mean nothing with --precision keep"),
        (["--io-precision", "match"], "mean nothing with --precision keep"),
        (["--check"], "dynamic axes and no shape"),
        (["--pairs", "--no-sites"], "means nothing with --no-sites"),
        (["--precision", "fp16", "--keep-fp32", "zzz"], "'zzz' matches no node"),
    ],
)
def test_wrong_use(cls, tmp_path, capsys, options, words):
    assert main(["rewrite", str(cls), "-o", str(tmp_path / "out.onnx"), *options]) == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_model_itself_is_never_overwritten(tmp_path, capsys):
    b = Builder()
    path = save(b.model(b.conv("x", 4, 4)), tmp_path)
    before = path.read_bytes()
    assert main(["rewrite", str(path), "-o", str(path)]) == 2
    assert path.read_bytes() == before
