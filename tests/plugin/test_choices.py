"""What choices are made from: the model's units, the GPU's figures, the limits that were given."""

from __future__ import annotations

import onnx
import pytest

from tests.models import conv_relu, save
from tests.plugin.samples import query_for, sites_of, source_of
from trtplug.kernels.family import DEFAULT_SHARED_BYTES
from trtplug.plugin.evidence import Evidence, problem_digest
from trtplug.plugin.units import list_candidates


@pytest.mark.parametrize(
    ("sm", "gpus", "profile"),
    [(90, ("h200",), "h200"), (90, (), None), (90, ("rtx4090", "h100-sxm"), "h100-sxm")],
)
def test_the_first_profile_of_the_sm_stands_in(sm, gpus, profile):
    place = query_for(sm=sm, gpus=gpus).place
    assert (place.profile.name if place.profile else None) == profile
    assert place.shared_bytes == DEFAULT_SHARED_BYTES
    assert query_for(shared_bytes=16 << 10).place.shared_bytes == 16 << 10


def test_units_are_the_sites_and_then_the_pairs(det):
    units = list_candidates(source_of(det, "x=1x3x64x64", precision="fp16"))
    assert [u.is_pair for u in units] == [False] * 62 + [True] * 12
    assert {u.problem.dtype for u in units} == {"float16"}
    assert units[62].label == "p2o.Conv.1+p2o.Conv.2"


def test_a_site_of_unknown_size_says_so(tmp_path):
    model = conv_relu()
    model.graph.node[0].input[0] = "t"
    model.graph.node.insert(0, type(model.graph.node[0])(op_type="Mystery", input=["x"],
                                                         output=["t"], domain="else"))  # fmt: skip
    model.opset_import.add(domain="else", version=1)
    (unit,) = list_candidates(source_of(save(model, tmp_path / "m.onnx")))
    assert unit.problem is None
    assert unit.obstacle == "the size of t is not known"


def test_sizes_that_a_profile_forbids_end_no_build(tmp_path):
    # 5x5 on 2x2 pixels, at the least sizes alone.
    path = save(conv_relu(shape=(1, 3, "h", "w"), kernel=5), tmp_path / "m.onnx")
    proto = onnx.load(path)
    for attribute in proto.graph.node[0].attribute:
        if attribute.name == "pads":
            attribute.ints[:] = [0, 0, 0, 0]
    source = source_of(save(proto, path), "x=1x3x2x2:1x3x16x16:1x3x32x32")
    (unit,) = list_candidates(source)
    assert unit.problem is None
    assert unit.obstacle
    (site,) = sites_of(source)
    assert (site.choice, site.reason) == ("native", unit.obstacle)


def test_evidence_reaches_the_choice(tmp_path):
    from tests.plugin.test_evidence import GPU, one

    source = source_of(save(conv_relu(), tmp_path / "m.onnx"))
    (unit,) = list_candidates(source)
    line = one(problem_sha256=problem_digest(unit.problem), gpu="NVIDIA Double")
    known = Evidence(measurements=(line,), sha256="0" * 64)
    (site,) = sites_of(source, mode="auto", evidence=known)
    assert site.choice == "plugin"
    assert site.tactics == ("direct_linear",)
    assert GPU not in site.reason
