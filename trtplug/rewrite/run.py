"""Puts CBR and CBRPair nodes where the sites are: the same outputs, with fewer nodes.

Goes in: a model, which is never changed. Comes out: a model in parts that shares all that stays
with the first one. A weight into which nothing folds is used by its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from trtplug.model.convolution import read_convolution
from trtplug.model.graph import Graph, Node, index_graph, reads_of
from trtplug.model.save import ModelParts, NewTensor, Tensor, parts_of, without
from trtplug.ops.cbr import DOMAIN, VERSION
from trtplug.ops.cbr_function import ELEM_TYPES, FIRST_IR_WITH_OVERLOADS
from trtplug.rewrite.find import keeps_overridable, search
from trtplug.rewrite.fold import fold_bias, fold_weight
from trtplug.rewrite.pair import Pair
from trtplug.rewrite.rules.cbr_pair import PairMatch
from trtplug.rewrite.site import NearMiss, Site
from trtplug.rewrite.units import Unit, function_of, join_pairs, matches_of, node_of, overload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import Any

    from trtplug.model.constants import Constant
    from trtplug.model.load import Model
    from trtplug.rewrite.rules.cbr import Match
    from trtplug.rewrite.scope import Scope

    Array = np.ndarray[Any, np.dtype[Any]]
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
    pairs: bool = False,
) -> Rewrite:
    """The model with a CBR node at each site.

    Args:
        model: never changed.
        fold_overridable: see `find_sites`.
        only: labels of the convolutions to take; all sites by default.
        pairs: put one CBRPair node where a depthwise site and a pointwise one form a pair.

    Raises:
        NodeInvalidError: a convolution that contradicts itself.
    """
    root = index_graph(model.proto.graph)
    found, misses = search(model, root, fold_overridable)
    chosen: _Chosen = {}
    for scope, matches in found:
        taken = tuple(m for m in matches if only is None or m.site.conv in only)
        units = join_pairs(scope.graph, taken) if pairs else taken
        chosen[scope.graph] = (scope, units)
    units = tuple(u for _, some in chosen.values() for u in some)
    sites = tuple(m.site for u in units for m in matches_of(u))
    if not sites and all(graph.was_sorted for graph in root.walk()):
        parts = parts_of(model.proto, model.path.parent)
        return Rewrite(parts=parts, sites=(), pairs=(), near_misses=misses, notices=())
    names = _Names(root)
    nodes, tensors = _rewrite_graph(root, chosen, names)
    keep = keeps_overridable(model, fold_overridable)
    both = (v.name for v in root.proto.input if v.name in root.initializers)
    dropped = () if keep else tuple(both)
    graph = _graph_without(root, nodes, tensors, dropped)
    graph.value_info.extend(_new_values(graph, *chosen[root]))
    parts = ModelParts(
        head=_head(model, units),
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


class _Names:
    """Gives out names that no tensor of the model has."""

    def __init__(self, root: Graph) -> None:
        self._taken: set[str] = set()
        for graph in root.walk():
            self._taken |= graph.inputs | graph.initializers.keys() | graph.producer.keys()

    def new(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


def _rewrite_graph(
    graph: Graph, chosen: _Chosen, names: _Names
) -> tuple[tuple[NodeProto, ...], tuple[Tensor, ...]]:
    """Nodes and initializers of one graph after the rewrite."""
    scope, units = chosen[graph]
    placed: dict[Node, NodeProto] = {}
    gone: set[Node] = set()
    perhaps: set[Node] = set()
    added: list[Tensor] = []
    for unit in units:
        nodes_in = [n for m in matches_of(unit) for n in m.nodes]
        below = [n for n in nodes_in if n in scope.claimed]
        placed[below[-1]] = _node(unit, scope, names, added)
        gone.update(below)
        perhaps.update(n for n in nodes_in if n not in scope.claimed)
    for below_graph in graph.subgraphs:
        _rewrite_owner(below_graph, chosen, names, placed)
    kept = [n for n in graph.nodes if n in placed or n not in gone]
    dead, unused = _dead(graph, kept, placed, gone, perhaps)
    nodes = tuple(placed.get(n, n.proto) for n in kept if n not in dead)
    tensors = [t for t in graph.proto.initializer if t.name not in unused]
    return nodes, (*tensors, *added)


def _rewrite_owner(
    graph: Graph,
    chosen: _Chosen,
    names: _Names,
    placed: dict[Node, NodeProto],
) -> None:
    """Rewrites a subgraph, in a copy of the node that holds it."""
    if not _touched(graph, chosen) or graph.owner is None:
        return
    nodes, tensors = _rewrite_graph(graph, chosen, names)
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


def _node(unit: Unit, scope: Scope, names: _Names, added: list[Tensor]) -> NodeProto:
    matches = matches_of(unit)
    inputs = [matches[0].site.input]
    for match in matches:
        inputs += _weights(match, scope, names, added)
    if matches[-1].residual:
        inputs.append(matches[-1].residual)
    return node_of(unit, inputs)


def _weights(match: Match, scope: Scope, names: _Names, added: list[Tensor]) -> tuple[str, str]:
    """Names of weight and bias; new ones where something folds into them."""
    weight = scope.constants.get(match.weight)
    bias = scope.constants.get(match.bias)
    assert weight is not None  # A site has a constant weight.
    geometry = read_convolution(match.conv, weight.dims, scope.path)
    scaled = np.any(match.before.scale != 1) or np.any(match.after.scale != 1)
    moved = scaled or np.any(match.before.shift) or np.any(match.after.shift)
    weight_name, bias_name = match.weight, match.bias
    before, after = match.before, match.after
    if scaled:
        weight_name = names.new(f"{match.site.conv}.weight")
        make = partial(fold_weight, weight, geometry, before, after)
        added.append(_new_tensor(weight_name, weight.dims, weight, make))
    if moved or bias is None:
        bias_name = names.new(f"{match.site.conv}.bias")
        make = partial(fold_bias, weight, bias, geometry, before, after)
        added.append(_new_tensor(bias_name, (geometry.channels,), bias or weight, make))
    return weight_name, bias_name


def _new_tensor(
    name: str, dims: tuple[int, ...], like: Constant, make: Callable[[], Array]
) -> NewTensor:
    stored = like.proto
    external = stored is not None and stored.data_location == TensorProto.EXTERNAL
    return NewTensor(name=name, dims=dims, elem_type=like.elem_type, make=make, external=external)


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


_CONSTANT_CHAIN = (
    "Cast", "Constant", "ConstantOfShape", "Identity", "Reshape", "Squeeze", "Transpose",
    "Unsqueeze",
)  # fmt: skip


def _is_removable(maker: Node, name: str, perhaps: set[Node]) -> bool:
    return (maker in perhaps or maker.is_op(*_CONSTANT_CHAIN)) and maker.outputs == (name,)


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
        yield helper.make_tensor_value_info(site.output, ELEM_TYPES[site.dtype], shape)


def _head(model: Model, units: Iterable[Unit]) -> ModelProto:
    head: ModelProto = without(model.proto, ModelProto, "graph")
    wanted = {overload_of(unit): unit for unit in units}
    there = {f.overload for f in head.functions if f.domain == DOMAIN}
    for name, unit in wanted.items():
        if name not in there:
            head.functions.append(function_of(unit, model.opset))
    if wanted:
        head.ir_version = max(head.ir_version, FIRST_IR_WITH_OVERLOADS)
        if all(entry.domain != DOMAIN for entry in head.opset_import):
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
