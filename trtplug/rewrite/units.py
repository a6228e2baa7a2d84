"""What one node of ours stands for: a single site, or a pair of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.ops import cbr, cbr_function, cbr_pair, cbr_pair_function
from trtplug.rewrite.attributes import cbr_attributes
from trtplug.rewrite.rules.cbr import Match
from trtplug.rewrite.rules.cbr_pair import PairMatch, match_pairs

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onnx import FunctionProto, NodeProto

    from trtplug.model.graph import Graph

Unit = Match | PairMatch


def join_pairs(
    graph: Graph, matches: Sequence[Match], only: Collection[str] | None = None
) -> tuple[Unit, ...]:
    """The sites of a graph, with those that form a pair as one; `only` pairs of these labels."""
    found, _ = match_pairs(graph, matches)
    pairs = [p for p in found if only is None or p.pair.label in only]
    begins = {pair.first: pair for pair in pairs}
    behind = {pair.second for pair in pairs}
    return tuple(begins.get(m, m) for m in matches if m not in behind)


def matches_of(unit: Unit) -> tuple[Match, ...]:
    """The sites in it, the one that makes the output last."""
    return (unit.first, unit.second) if isinstance(unit, PairMatch) else (unit,)


def overload_of(unit: Unit) -> str:
    """The overload that its node calls."""
    if isinstance(unit, PairMatch):
        return cbr_pair_function.overload_name(unit.pair.attributes, unit.pair.depthwise.dtype)
    return cbr_function.overload_name(cbr_attributes(unit.site), unit.site.dtype)


def node_of(unit: Unit, inputs: Sequence[str]) -> NodeProto:
    """The ONNX node on these inputs."""
    if isinstance(unit, PairMatch):
        pair = unit.pair
        output, name = pair.pointwise.output, pair.label
        return cbr_pair.make_node(pair.attributes, inputs, output, name, overload_of(unit))
    site = unit.site
    return cbr.make_node(cbr_attributes(site), inputs, site.output, site.conv, overload_of(unit))


def function_of(unit: Unit, opset: int) -> FunctionProto:
    """The body of its node in standard operators."""
    if isinstance(unit, PairMatch):
        pair = unit.pair
        return cbr_pair_function.make_function(pair.attributes, pair.depthwise.dtype, opset)
    return cbr_function.make_function(cbr_attributes(unit.site), unit.site.dtype, opset)
