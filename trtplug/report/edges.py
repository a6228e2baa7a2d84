"""Which layer feeds which: the graph of the engine's layers, joined by their tensors' names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.report.report import ReportTensor

if TYPE_CHECKING:
    from trtplug.report.report import ReportLayer

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
