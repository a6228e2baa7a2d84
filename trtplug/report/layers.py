"""Layers of the engine as rows of the report: joined with ONNX nodes, work, and bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import Listing
from trtplug.profile import GpuProfile
from trtplug.report.bounds import Work, bound_us, known_sum
from trtplug.report.candidates import Joined, report_candidates
from trtplug.report.data import Added, KernelStatus, ReportLayer, ReportTensor, SelectedBy
from trtplug.tensor import find_element_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.backends.layer_listing import EngineLayer, LayerTensor
    from trtplug.report.model_facts import ModelFacts  # noqa: TC004
    from trtplug.tensor import Sizes


def _dims_at_opt(
    layers: tuple[EngineLayer, ...], nodes: tuple[tuple[str, ...], ...], facts: ModelFacts
) -> dict[str, Sizes]:
    """Name of a layer's tensor -> its sizes at the opt shapes, for those that can be derived.

    Args:
        layers: the engine's layers.
        nodes: labels of the ONNX nodes in each of them.
        facts: of the model.
    """
    known: dict[str, Sizes] = {}
    for layer in layers:
        for tensor in (*layer.inputs, *layer.constants, *layer.outputs):
            # Without a dynamic axis, or of the name of an ONNX tensor.
            sizes = facts.dims(tensor.name) if -1 in tensor.dims else tensor.dims
            if sizes is not None and _fits(tensor.dims, sizes):
                known[tensor.name] = sizes
    for layer, labels in zip(layers, nodes, strict=True):
        _learn(
            known,
            layer.outputs,
            (n for label in labels for n in facts.writes.get(label, ())),
            facts,
        )
    for layer, labels in zip(layers, nodes, strict=True):
        _learn(
            known, layer.inputs, (n for label in labels for n in facts.reads.get(label, ())), facts
        )
    for layer, labels in zip(layers, nodes, strict=True):
        if not labels and len(layer.inputs) == len(layer.outputs) == 1:
            _pass_through(known, layer.inputs[0], layer.outputs[0])
    return known


def _learn(
    known: dict[str, Sizes],
    tensors: Iterable[LayerTensor],
    names: Iterable[str],
    facts: ModelFacts,
) -> None:
    """Adds each tensor that the sizes of exactly one of the named ONNX tensors fit."""
    options = {sizes for name in names if (sizes := facts.dims(name)) is not None}
    for tensor in tensors:
        found = [o for o in options if _fits(tensor.dims, o)]
        if tensor.name not in known and len(found) == 1:
            known[tensor.name] = found[0]


def _pass_through(known: dict[str, Sizes], source: LayerTensor, result: LayerTensor) -> None:
    """A layer without ONNX nodes that keeps the dims of its one input keeps its sizes too."""
    if source.dims == result.dims:
        for one, other in ((source, result), (result, source)):
            if one.name in known:
                known.setdefault(other.name, known[one.name])


def _fits(pattern: tuple[int, ...], sizes: Sizes) -> bool:
    """Whether sizes agree with dims in which -1 is any size."""
    return len(pattern) == len(sizes) and all(
        p in (-1, s) for p, s in zip(pattern, sizes, strict=True)
    )


_JUST_IN_TIME = ("runtime_fusion",)
"""Layer types whose kernel is compiled on the GPU, so that the builder names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerContext:
    """What the rows of one engine have in common."""

    listing: Listing
    names: Mapping[str, str]
    """The builder's name of an ONNX node -> its label."""
    facts: ModelFacts
    profiles: tuple[GpuProfile, ...]
    tf32: bool
    joined: Joined
    """Candidate tables by the position of their layer."""
    selected_by: Mapping[str, SelectedBy] = field(default_factory=dict)
    """Cache key -> who decided its tactic, where it was not the builder."""
    plugins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a plugin node -> labels of the ONNX nodes that it replaces."""


def report_layers(context: LayerContext) -> tuple[ReportLayer, ...]:
    """One row for each layer, in the engine's order."""
    layers = context.listing.layers
    nodes = tuple(_labels(layer, context) for layer in layers)
    dims = _dims_at_opt(layers, nodes, context.facts)
    counted = _counted_in(layers, nodes, context.facts)
    return tuple(
        _row(position, layer, nodes[position], dims, counted[position], context)
        for position, layer in enumerate(layers)
    )


def _labels(layer: EngineLayer, context: LayerContext) -> tuple[str, ...]:
    """The ONNX nodes in a layer. A plugin's layer has the name of its node."""
    named = (*layer.onnx_layers, *((layer.name,) if layer.name in context.plugins else ()))
    found = (context.plugins.get(n, (context.names.get(n, n),)) for n in named)
    return tuple(dict.fromkeys(label for labels in found for label in labels))


def kernel_of(layer: EngineLayer) -> tuple[str | None, KernelStatus]:
    """Name of the kernel, if the builder chose one, and how it was chosen."""
    if layer.tactic and "STUB" not in layer.tactic:
        return layer.tactic, "chosen"
    if not (layer.inputs or layer.outputs or layer.constants):
        return None, "none"
    if layer.tactic or layer.type in _JUST_IN_TIME:
        return None, "chosen_at_first_run"
    return None, "unknown"


def added_kind(layer: EngineLayer) -> Added:
    """What a layer without ONNX nodes does."""
    if not layer.inputs:
        return "fill" if layer.outputs else "sync"
    # RTX names no ONNX nodes in matrix products that it makes of 1x1 convolutions in FP16.
    if layer.constants or len(layer.inputs) != 1 or len(layer.outputs) != 1:
        return "other"
    source, result = layer.inputs[0], layer.outputs[0]
    if source.dtype != result.dtype:
        return "cast"
    if (source.format, source.strides) != (result.format, result.strides):
        return "reformat"
    return "copy"


def _counted_in(
    layers: tuple[EngineLayer, ...], nodes: tuple[tuple[str, ...], ...], facts: ModelFacts
) -> list[list[str]]:
    """Labels whose operations are counted in each layer: every node in exactly one.

    A convolution or matrix product that the builder names in several layers belongs to the first
    that is no generated kernel; any other node to the first that names it.
    """
    home: dict[str, int] = {}
    for position, (layer, labels) in enumerate(zip(layers, nodes, strict=True)):
        for label in labels:
            before = home.setdefault(label, position)
            if facts.is_matrix(label) and layers[before].type == "kgen" and layer.type != "kgen":
                home[label] = position
    counted: list[list[str]] = [[] for _ in layers]
    for label, position in home.items():
        counted[position].append(label)
    return counted


def _row(
    position: int,
    layer: EngineLayer,
    labels: tuple[str, ...],
    dims: Mapping[str, Sizes],
    counted: list[str],
    context: LayerContext,
) -> ReportLayer:
    kernel, status = kernel_of(layer)
    added = None if labels else added_kind(layer)
    inputs, constants, outputs = (
        tuple(_tensor(t, dims) for t in group)
        for group in (layer.inputs, layer.constants, layer.outputs)
    )
    work = _work(layer, counted, added, (*inputs, *constants, *outputs), context.facts)
    flops = work.flops
    bounds = {
        profile.name: bound
        for profile in context.profiles
        if (bound := bound_us(work, profile, tf32=context.tf32)) is not None
    }
    table = context.joined.by_layer.get(position)
    selected_by = context.selected_by.get(table.key, "builder") if table else None
    return ReportLayer(
        index=position,
        name=layer.name,
        type=layer.type,
        onnx_nodes=labels,
        inputs=inputs,
        constants=constants,
        outputs=outputs,
        kernel=kernel,
        kernel_status=status,
        candidates=report_candidates(table, kernel) if table else (),
        margin=table.margin if table else None,
        # An override gives the same tactic in each build.
        near_tie=table.near_tie if table and selected_by == "builder" else None,
        selected_by=selected_by,
        # Where the table does not list what was taken, it says nothing of the key's winner.
        cache_key=(table.key or None) if table and table.chosen else None,
        time_us=None,
        flops=flops,
        bytes=work.bytes,
        intensity=flops / work.bytes if flops is not None and work.bytes else None,
        bound_us={name: bound for name, (bound, _) in bounds.items()},
        bound_by={name: by for name, (_, by) in bounds.items()},
        added=added,
    )


def _work(
    layer: EngineLayer,
    counted: list[str],
    added: Added | None,
    tensors: tuple[ReportTensor, ...],
    facts: ModelFacts,
) -> Work:
    flops = [(facts.flops(label), facts.is_matrix(label)) for label in counted]
    unknown = added == "other" or any(f is None for f, _ in flops)
    return Work(
        matrix_flops=None if unknown else sum(f or 0 for f, matrix in flops if matrix),
        vector_flops=None if unknown else sum(f or 0 for f, matrix in flops if not matrix),
        bytes=0 if layer.moves_nothing else known_sum({t.name: t.bytes for t in tensors}.values()),
        dtype=layer.inputs[0].dtype if layer.inputs else "",
    )


def _tensor(tensor: LayerTensor, dims: Mapping[str, Sizes]) -> ReportTensor:
    sizes = dims.get(tensor.name)
    element = find_element_type(tensor.dtype)
    bits = math.prod(sizes) * element.bits if sizes is not None and element is not None else None
    return ReportTensor(
        name=tensor.name,
        dims=tensor.dims,
        dims_at_opt=sizes,
        dtype=tensor.dtype,
        format=tensor.format,
        bytes=None if bits is None else -(-bits // 8),
    )
