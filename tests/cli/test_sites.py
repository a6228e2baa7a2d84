"""`trtplug sites` on real models and odd names."""

from __future__ import annotations

import json

import pytest

from tests.real_models import light_model
from tests.rewrite.graphs import Builder, save
from trtplug.cli.main import main
from trtplug.rewrite.site import NearMissReason


def test_the_table_of_a_real_model(det, capsys):
    assert main(["sites", str(det), "--shape", "x=1x3x640x640"]) == 0
    out = capsys.readouterr().out
    assert "62 convolutions: 62 sites, 0 near misses" in out
    assert "100.0%" in out
    row = next(line for line in out.splitlines() if "p2o.Conv.61" in line)
    assert row.split()[1:7] == ["1x96x160x160", "1x24x160x160", "3x3", "1x1", "1", "relu"]


def test_json_has_the_fields_that_scripts_rely_on(det, capsys):
    assert main(["sites", str(det), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "trtplug.sites/1"
    assert len(document["sites"]) == 62
    wanted = {"conv", "nodes", "activation", "residual", "kernel_shape", "strides", "pads"}
    assert wanted | {"dilations", "group"} <= set(document["sites"][0])
    assert document["totals"]["covered"] is None


def test_pairs_and_why_others_are_none(det, capsys):
    assert main(["sites", str(det), "--shape", "x=1x3x640x640", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["pairs"]) == 12
    assert document["pairs"][0] == {
        "depthwise": "p2o.Conv.1",
        "pointwise": "p2o.Conv.2",
        "between": document["sites"][1]["output"],
        "between_dims": [1, 16, 320, 320],
        "bytes_saved": 2 * 4 * 16 * 320 * 320,
    }
    reasons = {m["conv"]: (m["reason"], m["node"]) for m in document["pair_near_misses"]}
    assert reasons["p2o.Conv.21"] == ("multi_consumer", "p2o.GlobalAveragePool.0")
    assert reasons["p2o.Conv.25"] == ("other_op", "p2o.Mul.122")
    for form in ("text", "markdown"):
        assert main(["sites", str(det), "--format", form]) == 0
        out = capsys.readouterr().out
        assert "12 depthwise + pointwise pairs" in out
        assert "1x16" not in out  # No sizes without a shape.


def test_near_misses_with_their_reasons(tmp_path, capsys):
    b = Builder()
    y = b.add("Conv", "x", "w", name="dynamic")
    model = b.model(y, {"x": (1, 4, 9, 7), "w": (5, 4, 3, 3)})
    assert main(["sites", str(save(model, tmp_path)), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (miss,) = document["near_misses"]
    assert (miss["conv"], miss["reason"], miss["node"]) == ("dynamic", "dynamic_weight", "dynamic")
    assert document["totals"]["covered"] == 0.0
    assert main(["sites", str(tmp_path / "model.onnx")]) == 0
    assert "dynamic_weight" in capsys.readouterr().out


def test_weights_as_inputs_are_said_to_be_constants(capsys):
    assert main(["sites", str(light_model("vgg19")), "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "treated as constants" in captured.err
    assert main(["sites", str(light_model("vgg19")), "--format", "json", "--keep-overridable"]) == 0
    reasons = {m["reason"] for m in json.loads(capsys.readouterr().out)["near_misses"]}
    assert reasons == {"overridable"}


def test_odd_names_break_no_table(tmp_path, capsys):
    b = Builder()
    b.add("Conv", "x", b.normal(4, 4, 3, 3), name="a|b\n<script>\x1b[31m`")
    path = save(b.model("t0"), tmp_path)
    assert main(["sites", str(path), "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (row,) = [line for line in lines if "script" in line]
    assert row.count(" | ") == next(x for x in lines if "convolution | input" in x).count(" | ")
    assert "\x1b" not in row
    assert "<script" not in row.replace("\\<", "")
    assert main(["sites", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("reason", NearMissReason)
def test_every_reason_has_one_sentence(reason):
    assert reason.sentence.endswith(".")
    assert reason.value == reason.name.lower()
    assert "\n" not in reason.sentence


def test_a_contradiction_is_an_error_with_the_nodes_name(tmp_path, capsys):
    b = Builder()
    b.add("Conv", "x", b.normal(4, 4, 3, 3), kernel_shape=[1, 1], name="odd")
    assert main(["sites", str(save(b.model("t0"), tmp_path))]) == 2
    assert "'odd'" in capsys.readouterr().err
