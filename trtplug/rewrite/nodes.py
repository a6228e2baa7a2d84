"""The nodes that take the places of sites: by default CBR and CBRPair, with functions as bodies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from onnx import TensorProto

from trtplug.model.save import NewTensor, Tensor
from trtplug.ops import cbr, cbr_function, cbr_pair
from trtplug.rewrite.cbr_pair_rule import PairMatch, match_pairs
from trtplug.rewrite.cbr_rule import Match
from trtplug.rewrite.site import cbr_attributes
from trtplug.rewrite.weights import bias_of, constant_of, is_scaled, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from onnx import FunctionProto, NodeProto

    from trtplug.model.constants import Constant
    from trtplug.model.graph import Graph
    from trtplug.rewrite.scope import Scope

    Array = np.ndarray[Any, np.dtype[Any]]


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
        return cbr_pair.overload_name(unit.pair.attributes, unit.pair.depthwise.dtype)
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
        return cbr_pair.make_function(pair.attributes, pair.depthwise.dtype, opset)
    return cbr_function.make_function(cbr_attributes(unit.site), unit.site.dtype, opset)


class Names:
    """Gives out names that no tensor of the model has."""

    def __init__(self, root: Graph) -> None:
        self._taken: set[str] = set()
        for graph in root.walk():
            self._taken |= graph.inputs | graph.initializers.keys() | graph.producer.keys()

    def new(self, wanted: str) -> str:
        """The wanted name, or one like it; it is taken from now on."""
        name, number = wanted, 2
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name


class NodeMaker(Protocol):
    """Makes the node of a unit."""

    def node(self, unit: Unit, scope: Scope, names: Names, added: list[Tensor]) -> NodeProto:
        """The node; the weights that it needs beside those of the model go into `added`."""

    def functions(self, units: Iterable[Unit], opset: int) -> Iterator[FunctionProto]:
        """Bodies of the nodes in standard operators, each once."""


class CbrNodes:
    """Nodes that ONNX Runtime can run too. A weight into which nothing folds keeps its name."""

    def node(self, unit: Unit, scope: Scope, names: Names, added: list[Tensor]) -> NodeProto:
        """The CBR or CBRPair node."""
        matches = matches_of(unit)
        inputs = [matches[0].site.input]
        for match in matches:
            inputs += _weights(match, scope, names, added)
        if matches[-1].residual:
            inputs.append(matches[-1].residual)
        return node_of(unit, inputs)

    def functions(self, units: Iterable[Unit], opset: int) -> Iterator[FunctionProto]:
        """One for each overload that the nodes call."""
        wanted = {overload_of(unit): unit for unit in units}
        return (function_of(unit, opset) for unit in wanted.values())


def _weights(match: Match, scope: Scope, names: Names, added: list[Tensor]) -> tuple[str, str]:
    """Names of weight and bias; new ones where something folds into them."""
    weight, geometry = constant_of(match, scope)
    bias = scope.constants.get(match.bias)
    scaled = is_scaled(match)
    moved = scaled or np.any(match.before.shift) or np.any(match.after.shift)
    weight_name, bias_name = match.weight, match.bias
    if scaled:
        weight_name = names.new(f"{match.site.conv}.weight")
        make = partial(weight_of, match, scope)
        added.append(_new_tensor(weight_name, weight.dims, weight, make))
    if moved or bias is None:
        bias_name = names.new(f"{match.site.conv}.bias")
        make = partial(bias_of, match, scope)
        added.append(_new_tensor(bias_name, (geometry.channels,), bias or weight, make))
    return weight_name, bias_name


def _new_tensor(
    name: str, dims: tuple[int, ...], like: Constant, make: Callable[[], Array]
) -> NewTensor:
    stored = like.proto
    external = stored is not None and stored.data_location == TensorProto.EXTERNAL
    return NewTensor(name=name, dims=dims, elem_type=like.elem_type, make=make, external=external)
