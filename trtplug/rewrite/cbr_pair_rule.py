"""The rule for `trtplug::CBRPair`: a depthwise site whose only reader is a pointwise site.

It looks at sites that the rule for CBR has found, so that what folds into either has folded
already. A depthwise site stands in at most one pair, and so does a pointwise one: it has one input.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from trtplug.ops.cbr_pair import CbrPairAttributes, is_pointwise
from trtplug.rewrite.cbr_rule import Match
from trtplug.rewrite.site import Pair, PairMiss, PairMissReason, cbr_attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.model.graph import Graph, Node
    from trtplug.rewrite.site import Site


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairMatch:
    """A pair with all that the rewrite needs."""

    pair: Pair
    first: Match
    second: Match


def match_pairs(
    graph: Graph, matches: Sequence[Match]
) -> tuple[tuple[PairMatch, ...], tuple[PairMiss, ...]]:
    """The pairs among the sites of one graph, and each site with groups that begins none."""
    by_input: dict[str, list[Match]] = {}
    for match in matches:
        by_input.setdefault(match.site.input, []).append(match)
    pairs, misses = [], []
    for first in matches:
        site = first.site
        if site.group == 1 and not _is_depthwise(site):
            continue
        found = _second(first, graph, by_input.get(site.output, []))
        if isinstance(found, PairMiss):
            misses.append(found)
        else:
            pairs.append(PairMatch(pair=_pair(site, found.site), first=first, second=found))
    return tuple(pairs), tuple(misses)


def _pair(first: Site, second: Site) -> Pair:
    # The dilation of a single tap means nothing.
    pointwise = dataclasses.replace(cbr_attributes(second), dilations=(1, 1))
    attributes = CbrPairAttributes(depthwise=cbr_attributes(first), pointwise=pointwise)
    return Pair(depthwise=first, pointwise=second, attributes=attributes)


def _is_depthwise(site: Site) -> bool:
    return site.channels_per_group == 1 and site.group == site.channels


def _second(first: Match, graph: Graph, behind: Sequence[Match]) -> Match | PairMiss:
    """The pointwise site behind a depthwise one, or why there is none."""
    site = first.site

    def miss(reason: PairMissReason, node: str = site.conv) -> PairMiss:
        return PairMiss(conv=site.conv, reason=reason, node=node)

    if not _is_depthwise(site):
        return miss(PairMissReason.NOT_DEPTHWISE)
    if site.residual != "none":
        return miss(PairMissReason.RESIDUAL)
    if site.output in graph.outputs:
        return miss(PairMissReason.GRAPH_OUTPUT)
    readers = graph.consumers.get(site.output, ())
    if not readers:
        return miss(PairMissReason.NO_CONSUMER)
    if not behind:
        return miss(_why_none(readers), readers[0].label)
    second = behind[0]
    other = _other_reader(site.output, second, graph)
    if other is not None:
        return miss(PairMissReason.MULTI_CONSUMER, other.label)
    if second.site.dtype != site.dtype:
        return miss(PairMissReason.TYPE_CHANGE, second.site.conv)
    if not is_pointwise(cbr_attributes(second.site)):
        return miss(PairMissReason.NOT_POINTWISE, second.site.conv)
    return second


def _why_none(readers: Sequence[Node]) -> PairMissReason:
    """Why no site begins where a depthwise one ends."""
    if len(set(readers)) > 1:
        return PairMissReason.MULTI_CONSUMER
    return PairMissReason.TYPE_CHANGE if readers[0].is_op("Cast") else PairMissReason.OTHER_OP


def _other_reader(tensor: str, second: Match, graph: Graph) -> Node | None:
    """A node beyond the second convolution's own way in that needs what lies between.

    That way may have scales on it that were folded: what they make must serve nobody else either.
    """
    between, way = {tensor}, set()
    for node in second.nodes:
        if between.intersection(node.inputs) and node.position <= second.conv.position:
            way.add(node)
            between.update(() if node is second.conv else node.outputs)
    for name in between:
        others = [n for n in graph.consumers.get(name, ()) if n not in way]
        if others or name in graph.outputs:
            return others[0] if others else second.conv
    return None
