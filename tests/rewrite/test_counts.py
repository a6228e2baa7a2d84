"""Every convolution of the real models is a site or a near miss; the kinds are the right ones."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.real_models import LIGHT, PPOCR, light_model, ppocr_model
from trtplug.model.load import load_model
from trtplug.rewrite.find import find_sites

COUNTS = {
    "resnet50": {("relu", "none"): 33, ("relu", "before_activation"): 16, ("none", "none"): 4},
    "densenet121": {("relu", "none"): 59, ("none", "none"): 62},
    "shufflenet": {("relu", "none"): 17, ("relu", "before_activation"): 13, ("none", "none"): 19},
    "vgg19": {("relu", "none"): 16},
    "det": {
        ("hard_swish", "none"): 24,
        ("relu", "none"): 11,
        ("hard_sigmoid", "none"): 10,
        ("none", "none"): 17,
    },
}


def model_path(name: str):
    return ppocr_model(name) if name in PPOCR else light_model(name)


@pytest.mark.parametrize("name", [*PPOCR, *LIGHT])
def test_counts_add_up(name):
    model = load_model(model_path(name))
    sites, misses = find_sites(model)
    convolutions = [n for n in model.proto.graph.node if n.op_type == "Conv"]
    found = [s.conv for s in sites] + [m.conv for m in misses]
    assert len(found) == len(set(found)) == len(convolutions)
    inside = Counter(label for s in sites for label in s.nodes)
    assert max(inside.values()) == 1 or name in PPOCR


@pytest.mark.parametrize("name", COUNTS)
def test_kinds_of_sites(name):
    sites, misses = find_sites(load_model(model_path(name)))
    assert misses == ()
    assert Counter((s.activation, s.residual) for s in sites) == COUNTS[name]
