"""Names that a pass which records gives to its candidate tables: engine layers and ONNX nodes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from trtplug.report.candidates import join_tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from trtplug.backends.tactic_table import CandidateTable


def names_by_key(
    folder: Path, tables: Sequence[CandidateTable], labels: Mapping[str, str]
) -> dict[str, set[str]]:
    """Cache key -> further names of its operation.

    Args:
        folder: of the pass.
        tables: from its log.
        labels: the builder's name of an ONNX node -> its label.
    """
    from trtplug.produce import take_listing

    found: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        found[table.key] |= {labels.get(n, n) for n in table.onnx_layers}
    listing = take_listing(folder)
    layers = listing.layers if listing else ()
    for position, table in join_tables(layers, tables).by_layer.items():
        found[table.key].add(layers[position].name)
    return found
