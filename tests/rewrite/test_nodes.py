"""Nodes of another making in the places of sites."""

from __future__ import annotations

import onnx
from onnx import helper

from tests.models import conv_chain, save
from tests.networks import mobilenet_v2
from trtplug.model.load import load_model
from trtplug.ops.cbr import DOMAIN
from trtplug.rewrite.find import find_all
from trtplug.rewrite.nodes import Names, matches_of
from trtplug.rewrite.run import rewrite_model


class Stamps:
    """Nodes that say what they stand for."""

    def node(self, unit, scope, names, added):
        sites = [m.site for m in matches_of(unit)]
        label = "+".join(s.conv for s in sites)
        return helper.make_node(
            "Stamp", [sites[0].input], [sites[-1].output], name=label, domain=DOMAIN
        )

    def functions(self, units, opset):
        return iter(())


def test_a_maker_of_its_own_gives_nodes_without_functions(tmp_path):
    model = load_model(save(conv_chain(3), tmp_path / "m.onnx"))
    made = rewrite_model(model, only=("conv1",), maker=Stamps()).parts.to_proto()
    assert [n.op_type for n in made.graph.node] == ["Conv", "Relu", "Stamp", "Conv", "Relu"]
    assert not made.functions
    assert made.ir_version == model.ir_version
    assert [o.domain for o in made.opset_import] == ["", DOMAIN]
    # Weights that nobody reads any more are gone.
    assert not {"w1", "b1"} & {t.name for t in made.graph.initializer}


def test_pairs_can_be_named(tmp_path):
    model = load_model(save(mobilenet_v2(), tmp_path / "m.onnx"))
    first, second, *_ = (p.label for p in find_all(model).pairs)
    made = rewrite_model(model, pairs=[second], maker=Stamps())
    assert [p.label for p in made.pairs] == [second]
    names = {n.name for n in made.parts.nodes}
    assert second in names
    assert first not in names
    assert set(first.split("+")) <= names


def test_names_are_given_once():
    graph = onnx.helper.make_graph([], "g", [onnx.helper.make_tensor_value_info("x", 1, [1])], [])
    from trtplug.model.graph import index_graph

    names = Names(index_graph(graph))
    assert [names.new("x"), names.new("y"), names.new("y")] == ["x_2", "y", "y_2"]
