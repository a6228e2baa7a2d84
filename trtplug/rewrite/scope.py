"""One graph under search: its index, its constants and sizes, and which nodes are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.model.constants import Constants
from trtplug.model.extents import ExtentTable

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.model.graph import Graph, Node


class Scope:
    """What the rules ask of the graph they search, and of the graphs around it."""

    def __init__(
        self, graph: Graph, path: Path, opset: int, *, keep_overridable: bool, above: Scope | None
    ) -> None:
        self.graph = graph
        self.path = str(path)
        self.opset = opset
        self.claimed: set[Node] = set()
        """Nodes that are in a site already."""
        constants_above: Constants | None = above.constants if above is not None else None
        self.constants: Constants = Constants(
            graph, path.parent, constants_above, keep_overridable=keep_overridable
        )
        self._above = above
        self._extents: ExtentTable | None = None

    @property
    def extents(self) -> ExtentTable:
        """Symbolic sizes, computed when first asked for: many models need none."""
        if self._extents is None:
            above = self._above.extents if self._above is not None else None
            self._extents = ExtentTable(self.graph, self.constants, above)
        return self._extents

    def producer(self, name: str) -> Node | None:
        """The maker of a tensor, in this graph or in one around it."""
        graph = self.graph.scope_of(name) if name else None
        return graph.producer.get(name) if graph is not None else None
