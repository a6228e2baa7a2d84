"""What a pass that records tells of its candidate tables beside its log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.engine.built_files import take_listing
from trtplug.report.candidates import join_tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.backends.tactic_table import CandidateTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How engine and log call the same things."""

    names: Mapping[str, Collection[str]]
    """Cache key -> further names of its operation: its engine layer, its ONNX nodes."""
    shown: frozenset[str]
    """Keys whose engine layer names its kernel in the words of the log."""


def read_naming(
    folder: Path, tables: Sequence[CandidateTable], labels: Mapping[str, str]
) -> Naming:
    """From the engine of a pass.

    Args:
        folder: of the pass.
        tables: from its log.
        labels: the builder's name of an ONNX node -> its label.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        names[table.key] |= {labels.get(n, n) for n in table.onnx_layers}
    listing = take_listing(folder)
    layers = listing.layers if listing else ()
    shown = set()
    for position, table in join_tables(layers, tables).by_layer.items():
        names[table.key].add(layers[position].name)
        if table.chosen is not None and layers[position].tactic == table.chosen.kernel:
            shown.add(table.key)
    return Naming(names=names, shown=frozenset(shown))
