"""What a builder is given: the model, mended where its parser would stumble on a harmless oddity.

The computation is never changed. Each repair is listed; a model that needs none is given as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnx import GraphProto, ModelProto, NodeProto

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trtplug.model.load import Model
    from trtplug.tensor import ShapeRange

_UNSAFE = re.compile(r"[\x00-\x1f\x7f\[\]{}\x85\u2028\u2029]|, ")
"""What would make the builder's own layer listing ambiguous, were it in a node's name."""

_UNRELATED = re.compile(r"\?*")
"""Paddle writes `?` for every axis it does not know: those axes are not one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The model as a builder is given it."""

    data: bytes | None
    """Serialized; None where the file itself will do."""
    names: Mapping[str, str]
    """Name in `data` -> the node's label, for nodes that were renamed."""
    repairs: tuple[str, ...]
    """One sentence each."""


@dataclass(slots=True)
class _Repairs:
    """Collects what was mended, while one copy of the model is being made."""

    names: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def prepare(model: Model, ranges: tuple[ShapeRange, ...]) -> Prepared:
    """Repairs node names, names of unrelated axes, unused extra outputs of BatchNormalization."""
    renames = dict(_name_repairs(model.proto.graph))
    axes = _axes_to_part(model, ranges)
    dead = [n for n in _nodes(model.proto.graph) if _is_old_norm(n)]
    used = _used_names(model.proto.graph) if dead else set()
    trims = {n.output[0] for n in dead if not used.intersection(n.output[1:])}
    if not (renames or axes or trims):
        return Prepared(data=None, names={}, repairs=())
    copy = ModelProto()
    copy.CopyFrom(model.proto)
    repairs = _Repairs()
    _rename_nodes(copy, renames, repairs)
    _part_axes(copy, axes, repairs)
    _trim_outputs(copy, trims, repairs)
    data = copy.SerializeToString()
    return Prepared(data=data, names=repairs.names, repairs=tuple(repairs.notes))


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Every node of a graph and of the graphs inside it, in file order."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(
                attribute.graphs
            ):
                yield from _nodes(inner)


def _name_repairs(graph: GraphProto) -> Iterator[tuple[int, str]]:
    """Position of each node that needs another name, with its label.

    A node without a name needs none: the parser names it `node_of_<first output>`.
    """
    seen: set[str] = set()
    for position, node in enumerate(_nodes(graph)):
        label = node.name or (node.output[0] if node.output else "")
        if (node.name in seen and node.name) or _UNSAFE.search(label):
            yield position, label
        seen.add(node.name)


def _rename_nodes(copy: ModelProto, renames: Mapping[int, str], repairs: _Repairs) -> None:
    taken = {n.name for n in _nodes(copy.graph)}
    for position, node in enumerate(_nodes(copy.graph)):
        if position in renames:
            name = f"trtplug_node_{position}"
            while name in taken:
                name += "_"
            node.name = name
            repairs.names[name] = renames[position]
    if renames:
        repairs.notes.append(
            f"{len(renames)} node names were repeated or unsafe, and were replaced"
        )


def _axes_to_part(model: Model, ranges: tuple[ShapeRange, ...]) -> dict[str, str]:
    """Axis names that stand for more than one axis, and why they cannot be one.

    TensorRT takes axes of one name to be equal. A name is parted where it is a placeholder, or
    where the ranges given for its axes differ.
    """
    where: dict[str, list[tuple[int, int, int]]] = {}
    by_name = {r.name: r for r in ranges}
    for spec in model.inputs:
        chosen = by_name.get(spec.name)
        for axis, dim in enumerate(spec.shape):
            if isinstance(dim, str) and chosen is not None:
                sizes = (chosen.min[axis], chosen.opt[axis], chosen.max[axis])
                where.setdefault(dim, []).append(sizes)
    parted = {}
    for name, sizes_of in where.items():
        if len(sizes_of) > 1 and _UNRELATED.fullmatch(name):
            parted[name] = "it is a placeholder"
        elif len(set(sizes_of)) > 1:
            parted[name] = "the ranges given for them differ"
    return parted


def _part_axes(copy: ModelProto, axes: Mapping[str, str], repairs: _Repairs) -> None:
    for value in copy.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param in axes:
                dim.dim_param = f"{value.name}.axis{axis}"
    for name, why in axes.items():
        repairs.notes.append(f"input axes called {name!r} were taken as unrelated: {why}")


def _is_old_norm(node: NodeProto) -> bool:
    return node.op_type == "BatchNormalization" and len(node.output) > 1


def _used_names(graph: GraphProto) -> set[str]:
    names = {o.name for o in graph.output}
    for node in _nodes(graph):
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names.update(o.name for o in attribute.g.output)
    return names


def _trim_outputs(copy: ModelProto, trims: set[str], repairs: _Repairs) -> None:
    for node in _nodes(copy.graph):
        if node.output and node.output[0] in trims and _is_old_norm(node):
            del node.output[1:]
    if trims:
        repairs.notes.append(
            f"unused extra outputs of {len(trims)} BatchNormalization were dropped"
        )
