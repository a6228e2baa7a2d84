"""What the script in report.html works on: plain lists and dicts, ready for JSON.

Layers, nodes and tensors refer to each other by position. Every name is visible and every figure is
formatted here, by the builder of rows that the other renderers use: the script only lays out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeVar

from trtplug.report.data import ReportTensor
from trtplug.report.heading import OUTCOMES, choice_words, gpu_words, site_words
from trtplug.report.rows import (
    LayerRow,
    dtype_word,
    format_word,
    has_candidates,
    has_times,
    total_bounds,
    type_rows,
)
from trtplug.report.sections import OVERRIDES
from trtplug.report.words import (
    UNKNOWN,
    format_bytes,
    format_dims,
    format_flops,
    format_ratio,
    format_us,
    printable,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.report.data import Report, ReportCandidate, ReportLayer, ReportSite

Key = TypeVar("Key")


_WRITERS = 16
"""Layers may write parts of one tensor, as for a concatenation. So many of them, the latest, are
joined to each of its readers, which keeps the number of edges linear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEdges:
    """Edges between positions in `report.layers`; they always lead to a later position."""

    between: tuple[tuple[int, int, ReportTensor], ...]
    """From, to, and the tensor as the writer gives it."""
    read: tuple[tuple[int, ReportTensor], ...]
    """A layer, and a tensor of its inputs that no earlier layer wrote."""
    written: tuple[tuple[int, ReportTensor], ...]
    """A layer, and a tensor of its outputs that no later layer reads."""


def layer_edges(layers: tuple[ReportLayer, ...]) -> LayerEdges:
    """The edges of the graph, in the order of the layers that they lead to."""
    between: list[tuple[int, int, ReportTensor]] = []
    read: list[tuple[int, ReportTensor]] = []
    writers: dict[str, list[tuple[int, ReportTensor]]] = defaultdict(list)
    last_reader: dict[str, int] = {}
    for here, layer in enumerate(layers):
        for tensor in {t.name: t for t in layer.inputs}.values():
            last_reader[tensor.name] = here
            sources = writers.get(tensor.name, [])[-_WRITERS:]
            between.extend((there, here, written) for there, written in sources)
            if not sources:
                read.append((here, tensor))
        for tensor in layer.outputs:
            writers[tensor.name].append((here, tensor))
    written = (
        pair
        for name, pairs in writers.items()
        for pair in pairs
        if last_reader.get(name, -1) <= pair[0]
    )
    return LayerEdges(between=tuple(between), read=tuple(read), written=tuple(written))


Json = dict[str, object]
Positions = dict[str, int]


def page_data(report: Report, rows: tuple[LayerRow, ...]) -> Json:
    """All of the report that the script shows; `rows` are its layers, in the engine's order."""
    # A layer may name an ONNX node that the model does not have: it gets a position too.
    nodes = {label: position for position, label in enumerate(report.onnx_nodes)}
    tensors: dict[ReportTensor, int] = {}  # most are at the border of two layers
    by_name: Positions = {}
    for position, layer in enumerate(report.layers):
        by_name.setdefault(layer.name, position)
    return {
        "gpus": [{"name": gpu_words(g), "sm": g.sm} for g in report.gpus],
        "totals": [asdict(b) for b in total_bounds(report)],
        "types": [asdict(row) for row in type_rows(report)],
        "timed": has_times(report),
        "tried": has_candidates(report),
        "layers": [_layer(row, nodes, tensors) for row in rows],
        "graph": _graph(report, tensors),
        "sites": [_site(site, by_name, nodes) for site in report.sites],
        "misses": [
            {
                "conv": visible(miss.conv),
                "reason": visible(miss.reason),
                "node": printable(miss.node),
                "layers": _layer_links(miss.layers, by_name),
            }
            for miss in report.near_misses
        ],
        "nodes": [
            {"label": visible(label), "op": printable(report.onnx_nodes.get(label, ""))}
            for label in nodes
        ],
        "tensors": [_tensor(tensor) for tensor in tensors],
    }


def _positions(keys: Iterable[Key], table: dict[Key, int]) -> list[int]:
    """Where each key is in a table, which gets those that it lacks."""
    return [table.setdefault(key, len(table)) for key in keys]


def _tensor(tensor: ReportTensor) -> Json:
    opt = tensor.dims_at_opt
    return {
        "name": visible(tensor.name),
        "dims": format_dims(tensor.dims),
        "opt": format_dims(tensor.dims if opt is None else opt),
        "dtype": dtype_word(tensor.dtype),
        "word": format_word(tensor.format),
        "format": visible(tensor.format),
        "bytes": format_bytes(tensor.bytes),
    }


def _layer(row: LayerRow, nodes: Positions, tensors: dict[ReportTensor, int]) -> Json:
    layer = row.layer
    return {
        **{name: getattr(row, name) for name in ("name", "type", "lead", "kernel", "tensors")},
        "index": layer.index,
        "nodes": _positions(layer.onnx_nodes, nodes),
        "chosen": layer.kernel_status == "chosen",
        "flops": [row.flops, layer.flops],
        "intensity": [row.intensity, layer.intensity],
        "bytes": [row.bytes, layer.bytes],
        "time": [row.time, layer.time_us],
        "bounds": [asdict(b) for b in row.bounds],
        "added": layer.added or "",
        "inputs": _positions(layer.inputs, tensors),
        "constants": _positions(layer.constants, tensors),
        "outputs": _positions(layer.outputs, tensors),
        "margin": [row.margin, layer.margin],
        "near": layer.near_tie is True,
        "override": layer.selected_by if layer.selected_by in OVERRIDES else "",
        "candidates": [_candidate(c) for c in layer.candidates],
    }


_TIMED_BY = {"builder": "timed by the builder, alone", "prediction": "predicted"}


def _candidate(candidate: ReportCandidate) -> Json:
    return {
        "kernel": visible(candidate.kernel),
        "time": format_us(candidate.time_us),
        "ratio": format_ratio(candidate.ratio),
        "tactic": visible(candidate.tactic_hash or UNKNOWN),
        "chosen": candidate.chosen,
        "by": _TIMED_BY.get(candidate.timed_by or "", "not timed"),
    }


def _graph(report: Report, tensors: dict[ReportTensor, int]) -> Json:
    edges = layer_edges(report.layers)
    return {
        "between": [[a, b, *_positions([t], tensors)] for a, b, t in edges.between],
        "read": [[i, *_positions([t], tensors)] for i, t in edges.read],
        "written": [[i, *_positions([t], tensors)] for i, t in edges.written],
    }


def _site(site: ReportSite, by_name: Positions, nodes: Positions) -> Json:
    choice = site.choice
    return {
        "conv": visible(site.conv),
        "words": site_words(site),
        "nodes": _positions(site.nodes, nodes),
        "flops": [format_flops(site.flops), site.flops],
        "outcome": OUTCOMES[site.outcome],
        "fused": site.outcome in ("native_fused", "plugin"),
        "layers": _layer_links(site.layers, by_name),
        "why": printable(site.why),
        "choice": choice
        and {
            "words": choice_words(choice),
            "reason": visible(choice.reason),
            "before": _layer_links(choice.reformats_before, by_name),
            "after": _layer_links(choice.reformats_after, by_name),
        },
    }


def _layer_links(names: tuple[str, ...], by_name: Positions) -> list[int | str]:
    """The position of each layer; the name itself where no layer has it."""
    return [by_name.get(name, visible(name)) for name in names]
