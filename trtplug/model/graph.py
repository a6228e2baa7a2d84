"""A thin index over an ONNX graph: who makes a tensor, who reads it, and what a node is called.

Goes in: a `GraphProto`, which is never changed. It is an index of our own because it has to cost
little: each build looks for sites, and importing a graph library takes longer than the search does.
Knows no operator.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One node, with its lists read once: reading them through protobuf is slow."""

    proto: onnx.NodeProto
    label: str
    """Unique in the model, see `node_labels`."""
    op_type: str
    domain: str
    """Empty for standard ONNX operators, however the file spells it."""
    inputs: tuple[str, ...]
    """As in the file: an empty name is an input left out."""
    outputs: tuple[str, ...]
    position: int
    """Rank in `Graph.nodes`."""

    def is_op(self, *op_types: str) -> bool:
        """Whether this is a standard ONNX operator of one of these types."""
        return not self.domain and self.op_type in op_types

    def input(self, slot: int) -> str:
        """Name of an input; empty where it is left out."""
        return self.inputs[slot] if slot < len(self.inputs) else ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Graph:
    """A graph and its subgraphs, indexed."""

    proto: onnx.GraphProto
    nodes: tuple[Node, ...]
    """Every node after the makers of its inputs; otherwise in the file's order."""
    producer: Mapping[str, Node]
    consumers: Mapping[str, tuple[Node, ...]]
    """Tensor -> its readers, one entry for each time it is read. A node whose subgraph reads a
    tensor of this graph is a reader too."""
    initializers: Mapping[str, onnx.TensorProto]
    inputs: frozenset[str]
    outputs: frozenset[str]
    parent: Graph | None
    owner: Node | None
    """The node that this is a subgraph of."""
    was_sorted: bool
    """Whether the file had the nodes in a usable order."""
    subgraphs: list[Graph] = field(default_factory=list)

    def defines(self, name: str) -> bool:
        """Whether the tensor comes from this very graph, and not from one around it."""
        return name in self.producer or name in self.inputs or name in self.initializers

    def scope_of(self, name: str) -> Graph | None:
        """The innermost graph, from here outwards, that defines a tensor."""
        graph: Graph | None = self
        while graph is not None and not graph.defines(name):
            graph = graph.parent
        return graph

    def walk(self) -> Iterator[Graph]:
        """This graph and all graphs below it, outermost first."""
        waiting = deque([self])
        while waiting:
            graph = waiting.popleft()
            yield graph
            waiting.extend(graph.subgraphs)


def index_graph(proto: onnx.GraphProto) -> Graph:
    """The index of a model's graph and of everything nested in it."""
    labels = _Labels(proto)
    return _index(proto, labels, None, None)


def node_labels(proto: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Label -> node, for all nodes of a graph and of its subgraphs, in the file's order.

    A node's label is its name. Where it has none, or shares it with another node, it is the name of
    its first output; should that be taken too, a number is added (`x#2`). So labels are unique.
    """
    labels = _Labels(proto)
    return {labels.of(node): node for node in labels.nodes}


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attributes as Python values: strings decoded, tensors and graphs left whole."""
    return {a.name: _attribute_value(a) for a in node.attribute}


def subgraphs_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that a node holds in its attributes."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def _attribute_value(attribute: onnx.AttributeProto) -> Any:  # noqa: ANN401
    match attribute.type:
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.STRING:
            return attribute.s.decode(errors="replace")
        case AttributeProto.INTS:
            return tuple(attribute.ints)
        case AttributeProto.FLOATS:
            return tuple(attribute.floats)
        case AttributeProto.STRINGS:
            return tuple(s.decode(errors="replace") for s in attribute.strings)
        case AttributeProto.TENSOR:
            return attribute.t
        case AttributeProto.GRAPH:
            return attribute.g
        case _:
            return None


class _Labels:
    """Gives each node of a model its label."""

    def __init__(self, proto: onnx.GraphProto) -> None:
        self.nodes = tuple(_all_nodes(proto))
        names = Counter(node.name for node in self.nodes)
        taken = {name for name, count in names.items() if name and count == 1}
        self._of = {}
        numbers: dict[str, int] = {}
        for number, node in enumerate(self.nodes):
            label = node.name
            if names[label] != 1 or not label:
                label = _free(
                    next(filter(None, node.output), f"{node.op_type}_{number}"), taken, numbers
                )
                taken.add(label)
            self._of[id(node)] = label

    def of(self, node: onnx.NodeProto) -> str:
        # `self.nodes` keeps the wrappers alive, so that an id stands for one node.
        return self._of[id(node)]


def _free(name: str, taken: set[str], numbers: dict[str, int]) -> str:
    """A label that is not taken; the search goes on where it ended for this name before."""
    if name not in taken:
        return name
    number = numbers.get(name, 2)
    while f"{name}#{number}" in taken:
        number += 1
    numbers[name] = number
    return f"{name}#{number}"


def _all_nodes(proto: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    stack = [iter(proto.node)]
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node
        if node.attribute:
            stack.extend(iter(g.node) for g in reversed(list(subgraphs_of(node))))


def _index(
    proto: onnx.GraphProto, labels: _Labels, parent: Graph | None, owner: Node | None
) -> Graph:
    protos = list(proto.node)
    reads = [reads_of(node) for node in protos]
    order = _sorted_order(protos, reads)
    nodes = tuple(_node(protos[i], labels, rank) for rank, i in enumerate(order))
    consumers: dict[str, list[Node]] = {}
    for node, i in zip(nodes, order, strict=True):
        for name in reads[i]:
            consumers.setdefault(name, []).append(node)
    graph = Graph(
        proto=proto,
        nodes=nodes,
        producer={name: node for node in nodes for name in node.outputs if name},
        consumers={name: tuple(readers) for name, readers in consumers.items()},
        initializers={t.name: t for t in proto.initializer},
        inputs=frozenset(v.name for v in proto.input),
        outputs=frozenset(v.name for v in proto.output),
        parent=parent,
        owner=owner,
        was_sorted=all(a == b for a, b in enumerate(order)),
    )
    for node in nodes:
        for below in subgraphs_of(node.proto):
            graph.subgraphs.append(_index(below, labels, graph, node))
    return graph


def _node(proto: onnx.NodeProto, labels: _Labels, position: int) -> Node:
    domain = proto.domain
    return Node(
        proto,
        labels.of(proto),
        proto.op_type,
        "" if domain == "ai.onnx" else domain,
        tuple(proto.input),
        tuple(proto.output),
        position,
    )


def reads_of(node: onnx.NodeProto) -> list[str]:
    """What a node reads, its subgraphs' captures included; each as often as it is read."""
    names = [name for name in node.input if name]
    for graph in subgraphs_of(node):
        names += _captures(graph)
    return names


def _captures(proto: onnx.GraphProto) -> list[str]:
    """Names that a subgraph takes from the graphs around it."""
    own = {v.name for v in proto.input} | {t.name for t in proto.initializer}
    own.update(name for node in proto.node for name in node.output)
    read = [name for node in proto.node for name in reads_of(node)]
    read += [v.name for v in proto.output]
    return [name for name in read if name not in own]


def _sorted_order(protos: Sequence[onnx.NodeProto], reads: Sequence[list[str]]) -> list[int]:
    """Positions of the nodes, each after the makers of its inputs; else in the file's order.

    Nodes on a cycle keep their place at the end: they are a fault of the model, found elsewhere.
    """
    maker = {name: i for i, node in enumerate(protos) for name in node.output if name}
    if all(maker.get(name, -1) < i for i, names in enumerate(reads) for name in names):
        return list(range(len(protos)))
    import heapq

    waits = [len({maker[n] for n in names if n in maker} - {i}) for i, names in enumerate(reads)]
    after: dict[int, set[int]] = {}
    for i, names in enumerate(reads):
        for name in names:
            if maker.get(name, i) != i:
                after.setdefault(maker[name], set()).add(i)
    ready = [i for i, count in enumerate(waits) if not count]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for later in after.get(i, ()):
            waits[later] -= 1
            if not waits[later]:
                heapq.heappush(ready, later)
    done = set(order)
    return order + [i for i in range(len(protos)) if i not in done]
