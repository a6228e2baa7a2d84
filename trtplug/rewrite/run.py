"""Puts CBR and CBRPair nodes where the sites are: the same outputs, with fewer nodes.

Goes in: a model, which is never changed. Comes out: a model in parts that shares all that stays
with the first one. A weight into which nothing folds is used by its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

from trtplug.model.constants import CONSTANT_OPS
from trtplug.model.graph import Graph, Node, index_graph, reads_of
from trtplug.model.save import ModelParts, NewTensor, Tensor, parts_of, without
from trtplug.ops.cbr import DOMAIN, VERSION
from trtplug.ops.cbr_function import FIRST_IR_WITH_OVERLOADS
from trtplug.rewrite.cbr_pair_rule import PairMatch
from trtplug.rewrite.find import keeps_overridable, search
from trtplug.rewrite.nodes import CbrNodes, Names, NodeMaker, Unit, join_pairs, matches_of
from trtplug.rewrite.site import NearMiss, Pair, Site
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from trtplug.model.load import Model
    from trtplug.rewrite.cbr_rule import Match
    from trtplug.rewrite.scope import Scope

    _Chosen = dict[Graph, tuple[Scope, tuple[Unit, ...]]]
    """What is to be rewritten in each graph."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rewrite:
    """A rewritten model, and what was done."""

    parts: ModelParts
    sites: tuple[Site, ...]
    """Those that were rewritten."""
    pairs: tuple[Pair, ...]
    """Those of `sites` that share a node."""
    near_misses: tuple[NearMiss, ...]
    notices: tuple[str, ...]
    """What the user should know, one sentence each."""


def rewrite_model(
    model: Model,
    *,
    fold_overridable: bool | None = None,
    only: Collection[str] | None = None,
    pairs: bool | Collection[str] = False,
    maker: NodeMaker | None = None,
) -> Rewrite:
    """The model with a node of ours at each site.

    Args:
        model: never changed.
        fold_overridable: see `find_sites`.
        only: labels of the convolutions to take; all sites by default.
        pairs: put one node where a depthwise site and a pointwise one form a pair; or labels of
            the pairs where one is to be put.
        maker: of the nodes; CBR and CBRPair nodes by default.

    Raises:
        NodeInvalidError: a convolution that contradicts itself.
    """
    root = index_graph(model.proto.graph)
    found, misses = search(model, root, fold_overridable)
    chosen: _Chosen = {}
    for scope, matches in found:
        taken = tuple(m for m in matches if only is None or m.site.conv in only)
        units = join_pairs(scope.graph, taken, None if pairs is True else pairs) if pairs else taken
        chosen[scope.graph] = (scope, units)
    units = tuple(u for _, some in chosen.values() for u in some)
    sites = tuple(m.site for u in units for m in matches_of(u))
    if not sites and all(graph.was_sorted for graph in root.walk()):
        parts = parts_of(model.proto, model.path.parent)
        return Rewrite(parts=parts, sites=(), pairs=(), near_misses=misses, notices=())
    maker = maker or CbrNodes()
    job = _Job(chosen=chosen, names=Names(root), maker=maker)
    nodes, tensors = _rewrite_graph(root, job)
    keep = keeps_overridable(model, fold_overridable)
    both = (v.name for v in root.proto.input if v.name in root.initializers)
    dropped = () if keep else tuple(both)
    graph = _graph_without(root, nodes, tensors, dropped)
    graph.value_info.extend(_new_values(graph, *chosen[root]))
    parts = ModelParts(
        head=_head(model, units, maker),
        graph=graph,
        nodes=nodes,
        tensors=tensors,
        folder=model.path.parent,
    )
    notices = (*_notices(root, dropped), *_trimmed(m for u in units for m in matches_of(u)))
    joined = tuple(u.pair for u in units if isinstance(u, PairMatch))
    return Rewrite(parts=parts, sites=sites, pairs=joined, near_misses=misses, notices=notices)


def _trimmed(matches: Iterable[Match]) -> Iterator[str]:
    """The folded BatchNormalizations whose extra outputs nobody reads.

    Before opset 14 those outputs asked for training mode, by the letter. Exporters left them in
    models that they meant for inference, and TensorRT's parser takes no others.
    """
    for match in matches:
        for node in match.nodes:
            if node.is_op("BatchNormalization") and len([o for o in node.outputs if o]) > 1:
                yield (
                    f"node {node.label!r} (BatchNormalization) has extra outputs that nothing "
                    "reads; it has been folded as in inference, without batch statistics"
                )


def _notices(root: Graph, dropped: tuple[str, ...]) -> tuple[str, ...]:
    sorting = "nodes were out of order and have been sorted"
    notices = [] if all(graph.was_sorted for graph in root.walk()) else [sorting]
    if dropped:
        notices.append(
            f"{len(dropped)} initializers that were graph inputs too are now constants, "
            f"and no inputs any more, such as {dropped[0]!r}"
        )
    return tuple(notices)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Job:
    """What is done in every graph."""

    chosen: _Chosen
    names: Names
    maker: NodeMaker


def _rewrite_graph(graph: Graph, job: _Job) -> tuple[tuple[NodeProto, ...], tuple[Tensor, ...]]:
    """Nodes and initializers of one graph after the rewrite."""
    scope, units = job.chosen[graph]
    placed: dict[Node, NodeProto] = {}
    gone: set[Node] = set()
    perhaps: set[Node] = set()
    added: list[Tensor] = []
    for unit in units:
        nodes_in = [n for m in matches_of(unit) for n in m.nodes]
        below = [n for n in nodes_in if n in scope.claimed]
        placed[below[-1]] = job.maker.node(unit, scope, job.names, added)
        gone.update(below)
        perhaps.update(n for n in nodes_in if n not in scope.claimed)
    for below_graph in graph.subgraphs:
        _rewrite_owner(below_graph, job, placed)
    kept = [n for n in graph.nodes if n in placed or n not in gone]
    dead, unused = _dead(graph, kept, placed, gone, perhaps)
    nodes = tuple(placed.get(n, n.proto) for n in kept if n not in dead)
    tensors = [t for t in graph.proto.initializer if t.name not in unused]
    return nodes, (*tensors, *added)


def _rewrite_owner(
    graph: Graph,
    job: _Job,
    placed: dict[Node, NodeProto],
) -> None:
    """Rewrites a subgraph, in a copy of the node that holds it."""
    if not _touched(graph, job.chosen) or graph.owner is None:
        return
    nodes, tensors = _rewrite_graph(graph, job)
    new = _graph_without(graph, nodes, tensors, ())
    new.node.extend(nodes)
    new.initializer.extend(t.to_proto() if isinstance(t, NewTensor) else t for t in tensors)
    owner = placed.get(graph.owner)
    if owner is None:
        owner = NodeProto()
        owner.CopyFrom(graph.owner.proto)
        placed[graph.owner] = owner
    _replace_subgraph(graph, owner, new)


def _touched(graph: Graph, chosen: _Chosen) -> bool:
    return any(chosen[g][1] or not g.was_sorted for g in graph.walk())


def _replace_subgraph(graph: Graph, owner: NodeProto, new: GraphProto) -> None:
    """Puts `new` where the copy of the owner holds what was `graph`."""
    assert graph.owner is not None
    for old, attribute in zip(graph.owner.proto.attribute, owner.attribute, strict=True):
        if old.HasField("g") and old.g is graph.proto:
            attribute.g.CopyFrom(new)
        for i, below in enumerate(old.graphs):
            if below is graph.proto:
                attribute.graphs[i].CopyFrom(new)


def _dead(
    graph: Graph,
    kept: list[Node],
    placed: dict[Node, NodeProto],
    gone: set[Node],
    perhaps: set[Node],
) -> tuple[set[Node], set[str]]:
    """Nodes and initializers that only the replaced nodes had a use for.

    What was unused before stays: it is not ours to tidy.
    """
    uses: dict[str, int] = {}
    for node in kept:
        for name in reads_of(placed.get(node, node.proto)):
            uses[name] = uses.get(name, 0) + 1
    dead: set[Node] = set()
    unused: set[str] = set()
    waiting = [name for n in (*gone, *perhaps) for name in n.inputs]
    waiting += [name for n in perhaps for name in n.outputs]
    while waiting:
        name = waiting.pop()
        if uses.get(name) or name in graph.outputs:
            continue
        maker = graph.producer.get(name)
        if maker is None:
            unused.add(name)
        elif maker not in gone and maker not in dead and _is_removable(maker, name, perhaps):
            dead.add(maker)
            for read in maker.inputs:
                uses[read] = uses.get(read, 0) - 1
                waiting.append(read)
    return dead, unused


def _is_removable(maker: Node, name: str, perhaps: set[Node]) -> bool:
    return (maker in perhaps or maker.is_op(*CONSTANT_OPS)) and maker.outputs == (name,)


def _new_values(graph: GraphProto, scope: Scope, units: Iterable[Unit]) -> Iterator[ValueInfoProto]:
    """Types and shapes of what our nodes make, where the file is silent: other tools need them."""
    told = {v.name for v in (*graph.value_info, *graph.output)}
    for unit in units:
        match = matches_of(unit)[-1]
        site = match.site
        if site.output in told:
            continue
        extents = scope.extents.get(match.conv.outputs[0]) or (None, site.channels, None, None)
        shape = [n if isinstance(n, int) else None for n in extents]
        yield helper.make_tensor_value_info(site.output, element_type(site.dtype).onnx, shape)


def _head(model: Model, units: Sequence[Unit], maker: NodeMaker) -> ModelProto:
    head: ModelProto = without(model.proto, ModelProto, "graph")
    there = {f.overload for f in head.functions if f.domain == DOMAIN}
    for function in maker.functions(units, model.opset):
        head.ir_version = max(head.ir_version, FIRST_IR_WITH_OVERLOADS)
        if function.overload not in there:
            head.functions.append(function)
    if units and all(entry.domain != DOMAIN for entry in head.opset_import):
        head.opset_import.append(helper.make_opsetid(DOMAIN, VERSION))
    return head


def _graph_without(
    graph: Graph, nodes: Iterable[NodeProto], tensors: Iterable[Tensor], dropped: Collection[str]
) -> GraphProto:
    """The graph without nodes and initializers; no word is left of tensors that are gone."""
    changed = ("node", "initializer", "value_info", "input")
    new: GraphProto = without(graph.proto, GraphProto, *changed)
    new.input.extend(v for v in graph.proto.input if v.name not in dropped)
    there = {name for node in nodes for name in node.output} | {t.name for t in tensors}
    new.value_info.extend(v for v in graph.proto.value_info if v.name in there)
    return new
