"""What the script in report.html works on: plain lists and dicts, ready for JSON.

Layers, nodes and tensors refer to each other by position. Every name is visible and every figure is
formatted here, by the builder of rows that the other renderers use: the script only lays out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.report.data import ReportTensor
from trtplug.report.heading import OUTCOMES, choice_words, gpu_words, site_words
from trtplug.report.rows import (
    BoundCell,
    LayerRow,
    dtype_word,
    format_word,
    has_candidates,
    has_times,
    total_bounds,
    type_rows,
)
from trtplug.report.sections import ASKED
from trtplug.report.words import (
    UNKNOWN,
    format_bytes,
    format_dims,
    format_flops,
    format_ratio,
    format_us,
    visible,
)

if TYPE_CHECKING:
    from trtplug.report.data import Report, ReportCandidate, ReportChoice, ReportLayer


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


def page_data(report: Report, rows: tuple[LayerRow, ...]) -> Json:
    """All of the report that the script shows; `rows` are its layers, in the engine's order."""
    tensors = _Tensors()
    nodes = _Nodes(list(report.onnx_nodes.items()))
    layers = [_layer(row, nodes, tensors) for row in rows]
    by_name: dict[str, int] = {}
    for position, layer in enumerate(report.layers):
        by_name.setdefault(layer.name, position)
    return {
        "gpus": [{"name": gpu_words(g), "sm": g.sm} for g in report.gpus],
        "totals": [_bound(b) for b in total_bounds(report)],
        "types": [
            {
                "name": row.type,
                "layers": row.layers,
                "flops": row.flops,
                "bytes": row.bytes,
                "bounds": [_bound(b) for b in row.bounds],
            }
            for row in type_rows(report)
        ],
        "timed": has_times(report),
        "tried": has_candidates(report),
        "layers": layers,
        "nodes": [
            {"label": visible(label), "op": visible(op) if op else ""} for label, op in nodes.labels
        ],
        "graph": _graph(report, tensors),
        "sites": _sites(report, by_name, nodes),
        "misses": _misses(report, by_name),
        "tensors": tensors.rows,
    }


class _Nodes:
    """Positions of ONNX nodes by label; a layer may name one that the model does not have."""

    def __init__(self, labels: list[tuple[str, str]]) -> None:
        self.labels = labels
        self.positions = {label: i for i, (label, _) in enumerate(labels)}

    def position(self, label: str) -> int:
        if label not in self.positions:
            self.positions[label] = len(self.labels)
            self.labels.append((label, ""))
        return self.positions[label]


class _Tensors:
    """Each tensor once: most are at the border of two layers."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self.positions: dict[ReportTensor, int] = {}

    def position(self, tensor: ReportTensor) -> int:
        if tensor not in self.positions:
            self.positions[tensor] = len(self.rows)
            self.rows.append(_tensor(tensor))
        return self.positions[tensor]


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


def _bound(cell: BoundCell) -> Json:
    return {
        "us": cell.us,
        "share": cell.share,
        "by": cell.by,
        "value": cell.value_us,
        "part": cell.share_value,
    }


def _layer(row: LayerRow, nodes: _Nodes, tensors: _Tensors) -> Json:
    layer = row.layer
    return {
        "index": layer.index,
        "name": row.name,
        "type": row.type,
        "nodes": [nodes.position(label) for label in layer.onnx_nodes],
        "lead": row.lead,
        "kernel": row.kernel,
        "chosen": layer.kernel_status == "chosen",
        "tensors": row.tensors,
        "flops": [row.flops, layer.flops],
        "intensity": [row.intensity, layer.intensity],
        "bytes": [row.bytes, layer.bytes],
        "time": [row.time, layer.time_us],
        "bounds": [_bound(b) for b in row.bounds],
        "added": layer.added or "",
        "inputs": [tensors.position(t) for t in layer.inputs],
        "constants": [tensors.position(t) for t in layer.constants],
        "outputs": [tensors.position(t) for t in layer.outputs],
        "margin": [row.margin, layer.margin],
        "near": layer.near_tie is True,
        "asked": layer.selected_by if layer.selected_by in ASKED else "",
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


def _graph(report: Report, tensors: _Tensors) -> Json:
    edges = layer_edges(report.layers)
    return {
        "between": [[a, b, tensors.position(t)] for a, b, t in edges.between],
        "read": [[i, tensors.position(t)] for i, t in edges.read],
        "written": [[i, tensors.position(t)] for i, t in edges.written],
    }


def _sites(report: Report, by_name: dict[str, int], nodes: _Nodes) -> list[Json]:
    return [
        {
            "conv": visible(site.conv),
            "words": site_words(site),
            "nodes": [nodes.position(label) for label in site.nodes],
            "flops": [format_flops(site.flops), site.flops],
            "outcome": OUTCOMES[site.outcome],
            "fused": site.outcome in ("native_fused", "plugin"),
            "layers": _layer_links(site.layers, by_name),
            "why": visible(site.why) if site.why else "",
            "choice": _choice(site.choice, by_name),
        }
        for site in report.sites
    ]


def _choice(choice: ReportChoice | None, by_name: dict[str, int]) -> Json | None:
    if choice is None:
        return None
    return {
        "words": choice_words(choice),
        "reason": visible(choice.reason),
        "before": _layer_links(choice.reformats_before, by_name),
        "after": _layer_links(choice.reformats_after, by_name),
    }


def _misses(report: Report, by_name: dict[str, int]) -> list[Json]:
    return [
        {
            "conv": visible(miss.conv),
            "reason": visible(miss.reason),
            "node": visible(miss.node) if miss.node else "",
            "layers": _layer_links(miss.layers, by_name),
        }
        for miss in report.near_misses
    ]


def _layer_links(names: tuple[str, ...], by_name: dict[str, int]) -> list[int | str]:
    """The position of each layer; the name itself where no layer has it."""
    return [by_name.get(name, visible(name)) for name in names]
