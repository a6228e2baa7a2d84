"""`trtplug inspect`, `verify-bundle`, `targets`, `doctor`: on a real bundle of a small model."""

from __future__ import annotations

import json

import pytest
from onnx import TensorProto, helper

from tests.models import conv_relu, save
from trtplug.cli.main import main

pytestmark = pytest.mark.rtx


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    model = save(conv_relu(), folder / "small.onnx")
    out = folder / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRTPLUG_STORE", str(folder / "store"))
        assert main(["build", str(model), "--target", "sm_89", "--out", str(out)]) == 0
    return out


@pytest.fixture
def say(capsys):
    """Runs a command line; status, stdout, stderr."""

    def run(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_a_model(bundle, say):
    status, text, _ = say("inspect", bundle.parent / "small.onnx")
    assert status == 0
    for word in ("small.onnx", "opset", "Conv 1", "Relu 1", "parameters", "floating-point at"):
        assert word in text
    status, text, _ = say("inspect", bundle.parent / "small.onnx", "--format", "json")
    document = json.loads(text)
    assert document["schema"] == "trtplug.model/1"
    assert document["operators"] == {"Conv": 1, "Relu": 1}
    assert document["flops"] > 0


def test_a_dynamic_model_counts_operations_at_a_shape(tmp_path, say):
    model = save(conv_relu(shape=(1, 3, "h", "w")), tmp_path / "dynamic.onnx")
    document = json.loads(say("inspect", model, "--format", "json")[1])
    assert document["flops"] is None
    assert document["shapes_problem"] == "the inputs are dynamic; give --shape"
    ((name, axes),) = document["dynamic_axes"].items()
    assert axes == ["axis 2 (h)", "axis 3 (w)"]
    document = json.loads(
        say("inspect", model, "--shape", f"{name}=1x3x8x8", "--format", "json")[1]
    )
    assert document["flops"] > 0


def test_a_bundle_a_report_a_lock(bundle, say):
    assert "rtx-1.7:sm_89" in say("inspect", bundle)[1]
    assert "Sites: 1 of 1 fused" in say("inspect", bundle / "sm_89/report.json")[1]
    assert "kernels chosen" in say("inspect", bundle / "sm_89/lock.json")[1]
    assert "small.onnx" in say("inspect", bundle / "manifest.json")[1]
    for name in ("manifest.json", "sm_89/report.json", "sm_89/lock.json"):
        stated = json.loads((bundle / name).read_text())
        assert json.loads(say("inspect", bundle / name, "--format", "json")[1]) == stated
    assert "## " in say("inspect", bundle / "sm_89/report.json", "--format", "markdown")[1]


def test_an_engine_with_its_manifest_beside_it(bundle, say):
    (engine,) = (bundle / "sm_89").glob("*.engine")
    status, text, _ = say("inspect", engine)
    assert status == 0
    assert "builder 1.7.1.116" in text
    assert "complete            yes" in text
    document = json.loads(say("inspect", engine, "--format", "json")[1])
    assert document["header"]["total_bytes"] == engine.stat().st_size
    assert document["manifest"]["gpus"][0] in ("rtx4090", "l4", "l40s", "rtx4080")


def test_an_engine_alone_cut_short_or_with_a_foreign_header(bundle, tmp_path, say):
    (engine,) = (bundle / "sm_89").glob("*.engine")
    data = engine.read_bytes()
    (tmp_path / "cut.engine").write_bytes(data[:-1])
    assert "no: it is shorter" in say("inspect", tmp_path / "cut.engine")[1]
    header = json.dumps({"task": "detect"}).encode()
    foreign = len(header).to_bytes(4, "little") + header + data
    (tmp_path / "foreign.engine").write_bytes(foreign)
    text = say("inspect", tmp_path / "foreign.engine")[1]
    assert f"{len(header) + 4} bytes of another tool" in text
    assert "none beside it" in text


@pytest.mark.parametrize("text", ["{", "{}", '{"schema": "other/1"}', '{"schema": 3}', "[" * 9999])
def test_a_document_of_no_known_kind_is_refused(text, tmp_path, say):
    (tmp_path / "x.json").write_text(text)
    status, out, err = say("inspect", tmp_path / "x.json")
    assert (status, out) == (2, "")
    assert "x.json" in err


def test_a_folder_without_a_manifest_is_refused(tmp_path, say):
    status, _, err = say("inspect", tmp_path)
    assert status == 2
    assert "manifest.json" in err


def test_verify_says_which_file_changed(bundle, tmp_path, say):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    status, text, _ = say("verify-bundle", copy)
    assert (status, "all 5 files" in text) == (0, True)
    (engine,) = (copy / "sm_89").glob("*.engine")
    data = bytearray(engine.read_bytes())
    data[100] ^= 1
    engine.write_bytes(data)
    (copy / "sm_89/lock.json").unlink()
    (copy / "stranger").write_text("")
    for command in (("verify-bundle", copy), ("inspect", copy, "--verify")):
        status, text, _ = say(*command)
        assert status == 1
        assert f"sm_89/{engine.name}: SHA-256 does not match the manifest" in text
        assert "sm_89/lock.json: missing" in text
        assert "stranger: not in the manifest" in text
    document = json.loads(say("verify-bundle", copy, "--format", "json")[1])
    assert document["intact"] is False
    assert len(document["problems"]) == 3


def test_verify_never_leaves_the_bundle(bundle, tmp_path, say):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy)
    manifest = copy / "manifest.json"
    manifest.write_text(manifest.read_text().replace("sm_89/lock.json", "../../../etc/passwd"))
    status, text, _ = say("verify-bundle", copy)
    assert status == 1
    assert "outside the bundle, or a link" in text
    assert say("verify-bundle", tmp_path / "none")[0] == 2


def test_names_cannot_steer_the_terminal(tmp_path, say):
    model = save(conv_relu(input_name="in\x1b[31m<script>"), tmp_path / "evil.onnx")
    text = say("inspect", model)[1]
    assert "\x1b" not in text
    assert "\\x1b[31m<script>" in text
    markdown = say("inspect", model, "--format", "markdown")[1]
    assert "<script>" not in markdown


def test_targets_and_doctor(say):
    status, text, _ = say("targets")
    assert status == 0
    assert "rtx4090" in text
    assert "none: build on a machine with this GPU" in text
    records = json.loads(say("targets", "--format", "json")[1])["targets"]
    assert {"name": "t4", "gpu": "NVIDIA T4", "sm": "sm_75", "backends": ["rtx"]} in records
    assert "| rtx4090 |" in say("targets", "--format", "markdown")[1]
    status, text, _ = say("doctor")
    assert status == 0
    assert "builds for sm_75" in text
    document = json.loads(say("doctor", "--format", "json")[1])
    assert document["schema"] == "trtplug.doctor/1"
    versions = {b["name"]: b["version"] for b in document["backends"]}
    assert versions["rtx"] == "1.7.1.116"


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_node_that_contradicts_itself_is_named(say, tmp_path, op):
    graph = helper.make_graph(
        [helper.make_node(op, ["x"], ["y"], name="lonely")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = save(model, tmp_path / "m.onnx")
    status, _, err = say("inspect", path)
    assert status == 2
    assert "error[node-invalid]" in err
    assert "'lonely'" in err
