"""The model as it is built: loaded, in the precision asked for, and ready for a builder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import ModelProto

from trtplug.errors import ModelInvalidError
from trtplug.model.graph import node_labels, subgraphs_of
from trtplug.model.load import Model, load_model
from trtplug.model.precision_rules import Island
from trtplug.model.ranges import resolve_ranges
from trtplug.model.validate import validate
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from onnx import GraphProto, NodeProto

    from trtplug.model.precision_options import PrecisionOptions


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
    """The builder's name of each node -> the node's label."""
    repairs: tuple[str, ...]
    """One sentence each."""


def prepare(
    model: Model,
    ranges: tuple[ShapeRange, ...],
    *,
    more: tuple[tuple[ShapeRange, ...], ...] = (),
    as_it_is: bool = True,
) -> Prepared:
    """Repairs node names, names of unrelated axes, unused extra outputs of BatchNormalization.

    Args:
        model: never changed.
        ranges: one for each input.
        more: the same, of further optimization profiles.
        as_it_is: whether the model is still that of its file.
    """
    labels = node_labels(model.proto.graph)
    renames = _name_repairs(labels)
    names = {
        renames.get(position) or node.name or f"node_of_{node.output[0]}": label
        for position, (label, node) in enumerate(labels.items())
        if renames.get(position) or node.name or node.output
    }
    axes = _axes_to_part(model, (ranges, *more))
    trims = _outputs_to_trim(labels.values(), model.proto.graph)
    if not (renames or axes or trims):
        data = None if as_it_is else model.proto.SerializeToString()
        return Prepared(data=data, names=names, repairs=())
    copy = ModelProto()
    copy.CopyFrom(model.proto)
    for position, node in enumerate(node_labels(copy.graph).values()):
        node.name = renames.get(position, node.name)
        if node.output and node.output[0] in trims:
            del node.output[1:]
    _part_axes(copy, axes)
    repairs = tuple(_repairs(len(renames), axes, len(trims)))
    return Prepared(data=copy.SerializeToString(), names=names, repairs=repairs)


def _name_repairs(labels: Mapping[str, NodeProto]) -> dict[int, str]:
    """Position of each node that needs another name -> that name.

    A node without a name needs none: the parser calls it `node_of_<first output>`.
    """
    times = Counter(node.name for node in labels.values())
    taken = set(times)
    renames = {}
    for position, (label, node) in enumerate(labels.items()):
        if (node.name and times[node.name] > 1) or _UNSAFE.search(label):
            plain = f"trtplug_node_{position}"
            name = plain if _UNSAFE.search(label) or label in taken else label
            while name in taken:
                name += "_"
            taken.add(name)
            renames[position] = name
    return renames


def _repairs(renamed: int, axes: Mapping[str, str], trimmed: int) -> Iterator[str]:
    if renamed:
        yield f"{renamed} node names were repeated or unsafe, and were replaced for the builder"
    for name, why in axes.items():
        yield f"input axes called {name!r} were taken as unrelated: {why}"
    if trimmed:
        yield f"unused extra outputs of {trimmed} BatchNormalization nodes were dropped"


def _axes_to_part(model: Model, profiles: tuple[tuple[ShapeRange, ...], ...]) -> dict[str, str]:
    """Axis names that stand for more than one axis, and why they cannot be one.

    TensorRT takes axes of one name to be equal. A name is parted where it is a placeholder, or
    where the ranges given for its axes differ.
    """
    where: dict[str, list[tuple[int, ...]]] = {}
    for spec in model.inputs:
        chosen = [r for ranges in profiles for r in ranges if r.name == spec.name]
        for axis, dim in enumerate(spec.shape):
            if isinstance(dim, str) and chosen:
                sizes = tuple(n for r in chosen for n in (r.min[axis], r.opt[axis], r.max[axis]))
                where.setdefault(dim, []).append(sizes)
    parted = {}
    for name, sizes_of in where.items():
        if len(sizes_of) > 1 and _UNRELATED.fullmatch(name):
            parted[name] = "it is a placeholder"
        elif len(set(sizes_of)) > 1:
            parted[name] = "the ranges given for them differ"
    return parted


def _part_axes(copy: ModelProto, axes: Mapping[str, str]) -> None:
    for value in copy.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param in axes:
                dim.dim_param = f"{value.name}.axis{axis}"


def _outputs_to_trim(nodes: Collection[NodeProto], graph: GraphProto) -> set[str]:
    """First output of each BatchNormalization whose further outputs nobody reads.

    Before opset 14 exporters wrote the training outputs too; the parser takes one output only.
    """
    norms = [n for n in nodes if n.op_type == "BatchNormalization" and len(n.output) > 1]
    if not norms:
        return set()
    used = {name for node in nodes for name in node.input} | {o.name for o in graph.output}
    used |= {o.name for node in nodes for inner in subgraphs_of(node) for o in inner.output}
    return {n.output[0] for n in norms if not used.intersection(n.output[1:])}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A model and what was done to it."""

    model: Model
    """In the precision asked for."""
    islands: tuple[Island, ...]
    """Nodes that stay in float32."""
    prepared: Prepared
    ranges: tuple[ShapeRange, ...]
    """One for each input."""
    more: tuple[tuple[ShapeRange, ...], ...] = ()
    """The same, of further optimization profiles."""


def read_source(
    path: Path,
    sha256: str,
    given: tuple[ShapeRange, ...],
    precision: PrecisionOptions,
    more: tuple[tuple[ShapeRange, ...], ...] = (),
) -> Source:
    """Reads a model of a known digest and makes it what the builder is to have.

    Raises:
        ModelInvalidError: it is no ONNX model, or has another digest by now.
        ShapeError: the shapes do not fit.
        NodeInvalidError: a node contradicts itself.
        PrecisionError: it cannot be given that precision, or nothing would change.
    """
    model = load_model(path)
    if model.sha256 != sha256:
        raise ModelInvalidError(path=str(path), problem="it changed while it was being read")
    ranges = resolve_ranges(model, given)
    further = tuple(resolve_ranges(model, profile) for profile in more)
    validate(model)
    changed, islands = in_precision(model, precision)
    return Source(
        model=changed,
        islands=islands,
        prepared=prepare(changed, ranges, more=further, as_it_is=changed is model),
        ranges=ranges,
        more=further,
    )


def in_precision(model: Model, options: PrecisionOptions) -> tuple[Model, tuple[Island, ...]]:
    """The model in the precision asked for, and the nodes that stay in float32.

    Raises:
        PrecisionError: it cannot be given that precision, or nothing would change.
    """
    if options.target == "keep":
        return model, ()
    from trtplug.model.precision import change_precision
    from trtplug.model.save import joined

    change = change_precision(model, options.target, io=options.io, keep_fp32=options.keep_fp32)
    return joined(change.parts, model), change.islands
