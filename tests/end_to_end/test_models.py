"""Twelve real models, each through the main job: bundle, report, and every Conv in some layer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import onnx
import pytest

from tests.end_to_end.builds import MODELS, bundle_of, flags, model_file
from tests.real_models import PPOCR
from tests.shared import shared_folder
from trtplug.bundle.manifest import verify_bundle
from trtplug.model.graph import node_labels

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.rtx


@pytest.fixture(params=MODELS)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Name of a model, and its bundle."""
    return request.param, bundle_of(request.param, shared_folder(tmp_path_factory, "bundles"))


def report_of(bundle: Path) -> dict:
    return json.loads((bundle / "sm_89/report.json").read_text())


def convs_of(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """All Conv and ConvTranspose nodes by their labels."""
    kinds = ("Conv", "ConvTranspose")
    found = {k: n for k, n in node_labels(graph).items() if n.op_type in kinds}
    assert len(found) == sum(n.op_type in kinds for n in graph.node) > 0
    return found


def computed_by(node: onnx.NodeProto, graph: onnx.GraphProto) -> tuple[object, ...]:
    """What a convolution computes; equal for two that compute the same.

    The light models' weights are fills, so that two convolutions of one size that read one tensor
    are the same: the builder keeps one of them (inception_v2: n461 goes, n475 stays).
    """
    fills = {n.output[0]: n for n in graph.node if n.op_type == "ConstantOfShape"}
    shapes = {t.name: t.raw_data or tuple(t.int64_data) for t in graph.initializer}

    def value(name: str) -> object:
        if name not in fills:
            return name
        attributes = tuple(a.SerializeToString() for a in fills[name].attribute)
        return (shapes[fills[name].input[0]], attributes)

    attributes = sorted(a.SerializeToString() for a in node.attribute)
    return (node.op_type, tuple(attributes), tuple(map(value, node.input)))


def test_model_is_built_and_every_conv_is_in_some_layer(built):
    name, bundle = built
    assert verify_bundle(bundle).problems == ()
    report = report_of(bundle)
    in_layers = {node for layer in report["layers"] for node in layer["onnx_nodes"]}
    graph = onnx.load(model_file(name)).graph
    convs = convs_of(graph)
    computed = [computed_by(n, graph) for label, n in convs.items() if label in in_layers]
    assert all(computed_by(n, graph) in computed for n in convs.values())
    if name in PPOCR:  # real weights: no two are the same
        assert set(convs) <= in_layers
    assert report["schema"] == "trtplug.report/1"
    assert not [w for w in report["warnings"] if "could not be read" in w]
    totals = report["totals"]
    assert totals["layers"] == len(report["layers"]) > 0
    assert totals["flops"] > 10_000_000
    assert totals["sites"] >= totals["sites_fused"] > 0
    # A stub is never shown as a kernel that was chosen.
    for layer in report["layers"]:
        if layer["kernel_status"] != "chosen":
            assert layer["kernel"] is None
        else:
            assert "STUB" not in layer["kernel"]
    html = (bundle / "sm_89/report.html").read_text()
    assert report["layers"][-1]["name"] in html
    lock = json.loads((bundle / "sm_89/lock.json").read_text())
    assert len(lock["layers"]) == len(report["layers"])
    assert lock["engine"]["sha256"] == report["engine"]["sha256"]
    if flags(name):
        assert lock["shapes"] == [flags(name)[1]]
