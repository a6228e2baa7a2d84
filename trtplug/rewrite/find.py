"""Every convolution of a model, as a site or as a near miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.model.graph import Graph, index_graph
from trtplug.model.validate import validate_nodes
from trtplug.ops.cbr import DOMAIN
from trtplug.rewrite.cbr_pair_rule import match_pairs
from trtplug.rewrite.cbr_rule import Match, finish, match_downwards
from trtplug.rewrite.scope import Scope
from trtplug.rewrite.site import NearMiss, NearMissReason, Pair, PairMiss, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.model.load import Model

FIRST_IR_WITH_OVERRIDES = 4
"""Before it every initializer had to be a graph input, so being one says nothing."""


def find_sites(
    model: Model, *, fold_overridable: bool | None = None
) -> tuple[tuple[Site, ...], tuple[NearMiss, ...]]:
    """All sites and near misses of a model, in the graph's order, subgraphs after their parents.

    Args:
        model: never changed.
        fold_overridable: treat initializers that are graph inputs too as constants. By default only
            where the file's IR version is so old that all of them had to be.

    Raises:
        NodeInvalidError: a convolution that contradicts itself.
    """
    matches, misses = search(model, index_graph(model.proto.graph), fold_overridable)
    sites = tuple(m.site for _, found in matches for m in found)
    return sites, misses


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Sites, pairs of them that one `trtplug::CBRPair` can take, and why others are neither."""

    sites: tuple[Site, ...]
    near_misses: tuple[NearMiss, ...]
    pairs: tuple[Pair, ...]
    pair_near_misses: tuple[PairMiss, ...]


def find_all(model: Model, *, fold_overridable: bool | None = None) -> Found:
    """What `find_sites` finds, and the pairs, in one search; arguments and errors are the same."""
    found, misses = search(model, index_graph(model.proto.graph), fold_overridable)
    by_graph = [match_pairs(scope.graph, matches) for scope, matches in found]
    return Found(
        sites=tuple(m.site for _, matches in found for m in matches),
        near_misses=misses,
        pairs=tuple(m.pair for matches, _ in by_graph for m in matches),
        pair_near_misses=tuple(miss for _, missed in by_graph for miss in missed),
    )


def find_pairs(
    model: Model, *, fold_overridable: bool | None = None
) -> tuple[tuple[Pair, ...], tuple[PairMiss, ...]]:
    """The pairs alone, and why other sites form none."""
    found = find_all(model, fold_overridable=fold_overridable)
    return found.pairs, found.pair_near_misses


def keeps_overridable(model: Model, fold_overridable: bool | None) -> bool:
    """Whether initializers that are graph inputs too are left as they are."""
    if fold_overridable is None:
        return model.ir_version >= FIRST_IR_WITH_OVERRIDES
    return not fold_overridable


def search(
    model: Model, root: Graph, fold_overridable: bool | None
) -> tuple[tuple[tuple[Scope, tuple[Match, ...]], ...], tuple[NearMiss, ...]]:
    """The matches of each graph of the model, and all near misses."""
    validate_nodes(model, root)
    keep = keeps_overridable(model, fold_overridable)
    scopes: dict[Graph | None, Scope | None] = {None: None}
    found: list[tuple[Scope, tuple[Match, ...]]] = []
    misses: list[NearMiss] = []
    for graph in root.walk():
        scope = Scope(
            graph, model.path, model.opset, keep_overridable=keep, above=scopes[graph.parent]
        )
        scopes[graph] = scope
        matches, missed = _search_graph(scope)
        found.append((scope, matches))
        misses += missed
    misses += _in_functions(model)
    return tuple(found), tuple(misses)


def _search_graph(scope: Scope) -> tuple[tuple[Match, ...], tuple[NearMiss, ...]]:
    walks, misses = [], []
    # Later convolutions first: theirs is the Add where two meet.
    for conv in reversed(scope.graph.nodes):
        if not conv.is_op("Conv"):
            continue
        result = match_downwards(conv, scope)
        if isinstance(result, NearMiss):
            misses.append(result)
        else:
            walks.append(result)
            scope.claimed.update(result.nodes)
    # Only now upwards: what stands below a convolution is that convolution's first.
    matches = [finish(walk, scope) for walk in reversed(walks)]
    return tuple(matches), tuple(reversed(misses))


def _in_functions(model: Model) -> Iterator[NearMiss]:
    for function in model.proto.functions:
        if function.domain == DOMAIN:
            continue  # The body of a CBR node: what a convolution of the model became.
        for number, node in enumerate(function.node):
            if node.op_type == "Conv" and node.domain in ("", "ai.onnx"):
                label = (
                    f"{function.name}/{node.name or (node.output[0] if node.output else number)}"
                )
                yield NearMiss(conv=label, reason=NearMissReason.IN_FUNCTION, node=label)
