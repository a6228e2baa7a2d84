"""Plugins of the plan against the layers of the engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.models import conv_chain, save
from tests.plugin.samples import offer_of, source_of
from tests.report.samples import small_report
from trtplug.backends.layer_listing import parse_inspector_json
from trtplug.errors import PluginDroppedError
from trtplug.report.candidates import join_tables
from trtplug.report.data import ReportCandidate
from trtplug.report.layers import LayerContext, report_layers
from trtplug.report.model_facts import gather_facts
from trtplug.report.sites import (
    dropped_sites,
    plugin_warnings,
    refuse_dropped,
    replaced_nodes,
    report_sites,
)

if TYPE_CHECKING:
    from pathlib import Path

LINEAR = "Row major linear"
HWC8 = "Channel major FP16 format where channel % 8 == 0"


def tensor(name, layout=LINEAR, dtype="Half"):
    return {"Name": name, "Dimensions": [1, 16, 32, 32], "Datatype": dtype, "Format": layout}


def layer(name, reads, makes, kind="PluginV3", metadata=""):
    return {
        "Name": name,
        "LayerType": kind,
        "Inputs": [reads],
        "Outputs": [makes],
        "TacticName": "t",
        "Metadata": metadata,
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two of three convolutions by plugins: facts and offer."""
    folder: Path = tmp_path_factory.mktemp("built")
    source = source_of(save(conv_chain(3), folder / "m.onnx"), precision="fp16")
    offer = offer_of(source, folder, sites=("conv0", "conv1"))
    return gather_facts(source.model, source.ranges), offer


def rows(built, *layers):
    facts, offer = built
    listing = parse_inspector_json(json.dumps({"Layers": list(layers)}))
    context = LayerContext(
        listing=listing,
        names={},
        facts=facts,
        profiles=(),
        tf32=False,
        joined=join_tables(listing.layers, ()),
        plugins=replaced_nodes(facts, offer),
    )
    made = report_layers(context)
    return made, report_sites(facts, made, offer)


KEPT = (
    layer("r0", tensor("x"), tensor("x8", HWC8), "Reformat"),
    layer("conv0", tensor("x8", HWC8), tensor("a", HWC8), metadata="[ONNX Layer: conv0]"),
    # Named by its layer alone.
    layer("conv1", tensor("a", HWC8), tensor("b", HWC8)),
    layer("r1", tensor("b", HWC8), tensor("bl"), "Reformat"),
    layer("native", tensor("bl"), tensor("y"), "CaskConvolution",
          "[ONNX Layer: conv2][ONNX Layer: relu2]"),
)  # fmt: skip


def test_a_plugins_layer_replaced_nodes_all_nodes_of_its_site(built):
    layers, sites = rows(built, *KEPT)
    assert layers[1].onnx_nodes == ("conv0", "relu0")
    assert layers[2].onnx_nodes == ("conv1", "relu1")
    assert layers[1].flops == layers[4].flops
    assert [s.outcome for s in sites] == ["plugin", "plugin", "native_fused"]
    assert sites[0].why == "a plugin's layer: conv0"
    assert dropped_sites(sites) == ()
    assert list(plugin_warnings(sites, layers, built[1])) == []


def test_reformats_around_it_are_listed(built):
    _, (first, second, native) = rows(built, *KEPT)
    assert (first.choice.reformats_before, first.choice.reformats_after) == (("r0",), ())
    assert (second.choice.reformats_before, second.choice.reformats_after) == ((), ("r1",))
    assert (native.choice.reformats_before, native.choice.reformats_after) == ((), ())
    assert native.choice.reason == "not among --plugin-sites"


def test_tactic_and_digests_where_they_are_known(built):
    _, offer = built
    (first, *_), site = offer.placed, offer.placed[0].ready.site
    _, (row, *_) = rows(built, *KEPT)
    assert row.choice.kit_sha256 == site.digest
    assert row.choice.tactics == tuple(k.tactic for k in site.kernels)
    if len(site.kernels) == 1:
        assert row.choice.tactic == site.kernels[0].tactic
        assert row.choice.kernel_sha256 == site.kernels[0].ptx_sha256
    else:
        assert (row.choice.tactic, row.choice.kernel_sha256) == (None, None)
    assert first.node == "conv0"


def test_a_tactic_that_the_builder_tells_by_number(built):
    facts, offer = built
    layers, _ = rows(built, *KEPT)
    site = offer.placed[0].ready.site
    for number, known in ((site.tactics[-1].number, True), (999, len(site.tactics) == 1)):
        chosen = ReportCandidate(
            kernel="k", time_us=1.0, ratio=1.0, tactic_hash=hex(number), chosen=True,
            timed_by="builder",
        )  # fmt: skip
        changed = (layers[0], replace(layers[1], candidates=(chosen,)), *layers[2:])
        row = report_sites(facts, changed, offer)[0].choice
        assert (row.tactic is not None) == known
        assert (row.kernel_sha256 is not None) == known


def test_a_dropped_plugin_warns_and_with_always_fails(built):
    _, offer = built
    layers, sites = rows(built, *KEPT[:2], *KEPT[3:])
    assert sites[1].outcome == "unknown"
    assert "no layer of the engine is it" in sites[1].why
    assert dropped_sites(sites) == ("conv1",)
    (words,) = plugin_warnings(sites, layers, offer)
    assert words == "The engine has no plugin layer for 'conv1', for which the plan has one."
    report = replace(small_report(), sites=sites, layers=layers)
    with pytest.raises(PluginDroppedError) as refused:
        refuse_dropped(report, offer)
    assert refused.value.sites == ("conv1",)
    refuse_dropped(report, replace(offer, mode="auto"))
    refuse_dropped(report, None)


def test_without_a_listing_it_is_not_known(built):
    facts, offer = built
    sites = report_sites(facts, (), offer)
    (words,) = plugin_warnings(sites, (), offer)
    assert "is not known" in words
    refuse_dropped(replace(small_report(), sites=sites, layers=()), offer)


def test_what_did_not_compile_and_what_was_asked_in_vain_is_said(built):
    _, offer = built
    lost = replace(offer, placed=(), log="error")
    assert [w.partition(":")[0] for w in plugin_warnings((), (), lost)] == [
        "--plugin always",
        "Some kernels of the plugin did not compile",
    ]
    assert list(plugin_warnings((), (), None)) == []


def test_without_plugins_there_is_no_choice(built):
    facts, _ = built
    assert {s.choice for s in report_sites(facts, ())} == {None}
