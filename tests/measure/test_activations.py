"""The tensors of each site, as ONNX Runtime has them."""

import numpy as np
import pytest

from tests.models import conv_chain, save
from tests.networks import mobilenet_v2, resnet18
from trtplug.measure.activations import read_activations
from trtplug.model.load import load_model
from trtplug.ops.cbr import reference
from trtplug.rewrite.find import find_pairs, find_sites
from trtplug.rewrite.site import cbr_attributes


@pytest.mark.parametrize("build", [resnet18, mobilenet_v2])
def test_the_ops_reference_makes_each_output_of_its_input(build, tmp_path):
    model = load_model(save(build(32), tmp_path / "m.onnx"))
    sites = {s.conv: s for s in find_sites(model)[0]}
    found = read_activations(model, {"x": (1, 3, 32, 32)}, seed=0)
    assert [n for n in found if n in sites] == list(sites)
    residuals = set()
    for conv, given in ((n, found[n]) for n in sites):
        attributes = cbr_attributes(sites[conv])
        made = reference(given.x, given.weights[0], given.biases[0], given.residual, attributes)
        assert np.abs(made - given.output).max() <= 1e-5 * max(1, np.abs(given.output).max())
        residuals.add(attributes.residual)
    assert len(residuals) == 2


def test_pairs_have_those_of_their_sites(tmp_path):
    model = load_model(save(mobilenet_v2(32), tmp_path / "m.onnx"))
    pairs, _ = find_pairs(model)
    assert pairs
    found = read_activations(model, {"x": (1, 3, 32, 32)}, seed=0)
    for pair in pairs:
        both = found[pair.label]
        first, second = found[pair.depthwise.conv], found[pair.pointwise.conv]
        assert both.x is first.x
        assert both.output is second.output
        assert both.residual is second.residual
        assert [id(w) for w in both.weights] == [id(s.weights[0]) for s in (first, second)]
        assert [id(b) for b in both.biases] == [id(s.biases[0]) for s in (first, second)]
        assert np.array_equal(first.output, second.x)
    one = pairs[-1]
    assert list(read_activations(model, {"x": (1, 3, 32, 32)}, 0, [one.label])) == [one.label]


def test_only_those_that_are_asked_for(tmp_path):
    model = load_model(save(conv_chain(3), tmp_path / "m.onnx"))
    found = read_activations(model, {"x": (1, 16, 32, 32)}, seed=0, only=["conv1"])
    assert list(found) == ["conv1"]
    assert found["conv1"].x.min() == 0


def test_a_seed_names_the_inputs(tmp_path):
    model = load_model(save(conv_chain(1), tmp_path / "m.onnx"))
    first, again, other = (
        read_activations(model, {"x": (1, 16, 32, 32)}, seed=s)["conv0"].x for s in (0, 0, 1)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
