"""The model that the builder gets: what its plugin nodes hold is what the sites had."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper

from tests.models import conv_chain, conv_relu, model_of, random_weight, save
from tests.networks import mobilenet_v2
from tests.plugin.samples import offer_of, plugin_nodes, site_of, source_of, unpacked
from trtplug.errors import ModelInvalidError
from trtplug.kernels.emulate import Tensors, run_tactic
from trtplug.kernels.kit import read_ptx
from trtplug.measure.equality import ALIKE, EXACT, compare_models, worst
from trtplug.model import save as save_module
from trtplug.model.save import parts_of, save_model
from trtplug.rewrite.weights import read_weights


def same_as_source(source, offer, tmp_path, sizes):
    """The largest error, and the least likeness, over all outputs."""
    first = tmp_path / "first.onnx"
    save_model(parts_of(source.model.proto, source.model.path.parent), first)
    second = unpacked(offer, tmp_path / "second.onnx", source.model.opset)
    trials = compare_models(first, second, source.model.inputs, sizes, seeds=(0, 1))
    return worst(trials)[1]


def test_a_real_model_computes_the_same(det, tmp_path):
    source = source_of(det, "x=1x3x64x64:1x3x96x64:2x3x96x96")
    offer = offer_of(source, tmp_path)
    model = onnx.load(offer.model)
    # Every site of the model, and nothing else of it.
    assert len(plugin_nodes(model)) == len(offer.placed) == 62
    assert not [n for n in model.graph.node if n.op_type == "Conv"]
    found = same_as_source(source, offer, tmp_path, [{"x": (1, 3, 64, 64)}, {"x": (2, 3, 96, 96)}])
    assert found.within(EXACT)


@pytest.mark.parametrize(("pairs", "made"), [(True, (4, 2)), (False, (0, 10))])
def test_a_real_model_in_half_precision_computes_alike(det, tmp_path, pairs, made):
    source = source_of(det, "x=1x3x64x64", precision="fp16")
    # The first ten convolutions, and the pairs that end in one of them.
    offer = offer_of(source, tmp_path, pairs=pairs, sites=("*p2o.Conv.?",))
    ops = [n.op_type for n in plugin_nodes(onnx.load(offer.model)).values()]
    assert (ops.count("CBRPair"), ops.count("CBR")) == made
    found = same_as_source(source, offer, tmp_path, [{"x": (1, 3, 64, 64)}])
    assert found.alike(ALIKE["fp16"])


def test_pairs_with_residuals_compute_alike(tmp_path):
    source = source_of(save(mobilenet_v2(), tmp_path / "m.onnx"), precision="fp16")
    offer = offer_of(source, tmp_path, sites=("*[678]*",))
    ops = {n.op_type for n in plugin_nodes(onnx.load(offer.model)).values()}
    assert ops >= {"CBR", "CBRPair", "CBRPairResidual"}
    (name,) = (i.name for i in source.model.inputs)
    found = same_as_source(source, offer, tmp_path, [{name: source.ranges[0].opt}])
    assert found.alike(ALIKE["fp16"])


def test_weights_in_bfloat16(tmp_path):
    source = source_of(save(conv_chain(2), tmp_path / "m.onnx"), precision="bf16")
    offer = offer_of(source, tmp_path)
    model = onnx.load(unpacked(offer, tmp_path / "plain.onnx", source.model.opset))
    plain = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for site in read_weights(source.model):
        assert site.weight.dtype.name == "bfloat16"
        assert np.array_equal(plain[f"{site.site.conv}.plain0"], site.weight)


def test_the_emulator_runs_the_kernel_of_a_site_on_what_the_model_holds(det, tmp_path):
    source = source_of(det, "x=1x3x32x32", precision="fp16")
    offer = offer_of(source, tmp_path, sites=("p2o.Conv.1", "p2o.Conv.2"), pairs=False)
    model = onnx.load(offer.model)
    weights = {w.site.conv: w for w in read_weights(source.model)}
    for name, node in plugin_nodes(model).items():
        site = site_of(node, offer)
        problem, (tactic, *_) = site.problem, site.tactics
        ptx = read_ptx(offer.kit, site.kernels[0].ptx_sha256)
        x = np.random.default_rng(0).standard_normal(problem.x.opt).astype(np.float16)
        tensors = Tensors(
            x=x.astype(np.float32),
            weights=(weights[name].weight.astype(np.float32),),
            biases=(weights[name].bias.astype(np.float32),),
            residual=None,
        )
        checked = run_tactic(tactic, problem, ptx, tensors)
        assert checked.problems == ()
        assert not checked.findings


def test_other_sites_stay_as_they_were(det, tmp_path):
    source = source_of(det, "x=1x3x64x64")
    offer = offer_of(source, tmp_path, sites=("p2o.Conv.3",))
    before, after = onnx.load(det), onnx.load(offer.model)
    (node,) = plugin_nodes(after).values()
    assert node.name == "p2o.Conv.3"
    was = {n.output[0]: n for n in before.graph.node}
    assert all(was[n.output[0]] == n for n in after.graph.node if n is not node)
    assert sum(n.op_type == "Conv" for n in after.graph.node) == 61


def test_sizes_are_those_of_all_profiles(tmp_path):
    path = save(conv_relu(shape=("n", 3, "h", "w")), tmp_path / "m.onnx")
    source = source_of(
        path, "x=1x3x16x16:2x3x32x32:2x3x64x64", more=(("x=4x3x8x16:4x3x8x16:8x3x8x16",),)
    )
    (site,) = (p.ready.site for p in offer_of(source, tmp_path).placed)
    x = site.problem.x
    assert (x.min, x.opt, x.max) == ((1, 3, 8, 16), (2, 3, 32, 32), (8, 3, 64, 64))
    assert site.problem.dynamic == ("batch", "height", "width")


def test_names_that_a_builder_could_not_tell_apart(tmp_path):
    model = conv_chain(3)
    model.graph.node[0].name = "odd [name], here"
    model.graph.node[2].name = ""
    for node in model.graph.node[3:]:
        node.name = "twice"
    source = source_of(save(model, tmp_path / "m.onnx"))
    offer = offer_of(source, tmp_path)
    made = plugin_nodes(onnx.load(offer.model))
    convs = {p.node: p.ready.unit.candidate.convs for p in offer.placed}
    assert made.keys() == convs.keys()
    assert len(made) == 3
    assert not any("[" in name for name in made)
    assert convs["trtplug_node_0"] == ("odd [name], here",)
    labels = {c for both in convs.values() for c in both}
    assert labels == {s.site for s in offer.sites}
    # ONNX Runtime refuses such names, so the same model with others is the reference.
    plain = source_of(save(conv_chain(3), tmp_path / "plain.onnx"))
    assert same_as_source(plain, offer, tmp_path, [{"x": (1, 16, 32, 32)}]).within(EXACT)


def test_external_data_stay_where_they_are(tmp_path):
    model = conv_chain(3)
    external_data_helper.convert_model_to_external_data(
        model, location="weights.bin", size_threshold=0
    )
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    source = source_of(path)
    (tmp_path / "work").mkdir()
    offer = offer_of(source, tmp_path / "work", sites=("conv1",))
    assert {f.name for f in offer.model.parent.iterdir()} == {"kit", "model.onnx"}
    made = onnx.load(offer.model, load_external_data=False)
    places = {
        t.name: {e.key: e.value for e in t.external_data}["location"]
        for t in made.graph.initializer
        if t.external_data
    }
    assert places
    assert set(places.values()) == {"weights.bin"}
    assert {t.name for t in made.graph.initializer if not t.external_data} == {
        "conv1.packed",
        "conv1.packed_bias",
    }
    # Beside the weights, where the parser looks, it computes the same.
    unpacked(offer, tmp_path / "second.onnx", source.model.opset)
    trials = compare_models(
        path, tmp_path / "second.onnx", source.model.inputs, [{"x": (1, 16, 32, 32)}]
    )
    assert worst(trials)[1].within(EXACT)


def test_what_protobuf_cannot_hold_is_an_error(tmp_path, monkeypatch):
    source = source_of(save(conv_chain(3), tmp_path / "m.onnx"))
    monkeypatch.setattr(save_module, "LARGEST_FILE", (1 << 20) + 5000)
    with pytest.raises(ModelInvalidError, match="passes 2 GiB"):
        offer_of(source, tmp_path)


def test_what_stands_in_a_subgraph_is_native(tmp_path):
    weight = random_weight(4, 4, 1, 1)
    branch = [
        helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], [f"{name}_out"], name=name)],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}_out", 1, (1, 4, 8, 8))],
        )
        for name in ("yes", "no")
    ]
    node = helper.make_node(
        "If", ["flag"], ["y"], name="if", then_branch=branch[0], else_branch=branch[1]
    )
    model = model_of(
        [node],
        inputs={"x": (1, 4, 8, 8)},
        outputs={"y": (1, 4, 8, 8)},
        weights={"w": weight, "flag": np.array(True)},
    )
    offer = offer_of(source_of(save(model, tmp_path / "m.onnx")), tmp_path)
    assert offer.placed == ()
    assert offer.model is None
    assert {s.reason for s in offer.sites} == {"it is in a subgraph"}
