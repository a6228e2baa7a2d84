"""The index: labels, order, who reads what."""

from __future__ import annotations

import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from trtplug.model.graph import _free, index_graph, node_labels


def graph_of(nodes: list[onnx.NodeProto], inputs: tuple[str, ...] = ("x",)) -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in inputs]
    return helper.make_graph(nodes, "g", values, [])


def relu(source: str, target: str, name: str = "") -> onnx.NodeProto:
    return helper.make_node("Relu", [source], [target], name=name)


def test_a_label_is_the_name_or_the_first_output():
    graph = graph_of([relu("x", "a", "one"), relu("a", "b"), relu("b", "c", "two")])
    assert list(node_labels(graph)) == ["one", "b", "two"]


def test_nodes_that_share_a_name_are_called_by_their_outputs():
    graph = graph_of([relu("x", "a", "n"), relu("a", "b", "n"), relu("b", "c", "a")])
    assert list(node_labels(graph)) == ["a#2", "b", "a"]


class Counting(str):
    """A name that counts how often it is formatted: once a label that is tried."""

    tried = 0
    __slots__ = ()

    def __format__(self, spec: str) -> str:
        Counting.tried += 1
        return str.__format__(self, spec)


def test_labels_of_many_nodes_of_one_name_take_linear_work():
    taken, numbers = {"a", "a#3"}, {}
    name = Counting("a")
    labels = []
    for _ in range(2_000):
        labels.append(_free(name, taken, numbers))
        taken.add(labels[-1])
    assert labels == ["a#2", *(f"a#{n}" for n in range(4, 2_003))]
    assert Counting.tried < 4 * len(labels)


def with_branch(name: str = "inner") -> onnx.GraphProto:
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [1])
    then = helper.make_graph([relu("a", "o", name)], "then", [], [out])
    other = helper.make_graph([relu("x", "o")], "else", [], [out])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return graph_of([relu("x", "a"), branch, relu("y", "z")], ("x", "c"))


def test_nodes_of_subgraphs_have_labels_too():
    assert list(node_labels(with_branch())) == ["a", "y", "o", "inner", "z"]
    index = index_graph(with_branch())
    assert [n.label for g in index.walk() for n in g.nodes] == ["a", "y", "z", "o", "inner"]


def test_a_node_whose_subgraph_reads_a_tensor_is_its_reader():
    index = index_graph(with_branch())
    assert [n.label for n in index.consumers["a"]] == ["y"]
    assert [n.label for n in index.consumers["x"]] == ["a", "y"]
    assert index.subgraphs[0].scope_of("a") is index


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "t1"]), st.integers(0, 5)), max_size=12))
def test_labels_are_unique_and_one_for_each_node(drawn):
    nodes = [relu("x", f"t{target}", name) for name, target in drawn]
    assert len(node_labels(graph_of(nodes))) == len(nodes)


@given(st.permutations(range(8)))
def test_sorting_puts_makers_first_and_is_stable(order):
    chain = [relu(f"t{i - 1}" if i % 3 else "x", f"t{i}") for i in range(8)]
    index = index_graph(graph_of([chain[i] for i in order]))
    place = {n.outputs[0]: n.position for n in index.nodes}
    assert all(place.get(n.inputs[0], -1) < n.position for n in index.nodes)
    assert index.was_sorted == (
        [n.outputs[0] for n in index.nodes] == [chain[i].output[0] for i in order]
    )


def test_a_cycle_keeps_all_nodes():
    index = index_graph(graph_of([relu("b", "a"), relu("a", "b"), relu("x", "c")]))
    assert sorted(n.label for n in index.nodes) == ["a", "b", "c"]


def test_a_long_chain_of_nested_names_is_no_matter():
    nodes = [relu("x" if i == 0 else f"t{i - 1}", f"t{i}") for i in range(20_000)]
    assert len(index_graph(graph_of(nodes[::-1])).nodes) == 20_000
