"""Facts of the model, computed once for all targets while the builders run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import NodeProto

from trtplug.model.flops import node_flops, unit_of
from trtplug.model.graph import node_labels
from trtplug.model.load import Model
from trtplug.model.shapes import ShapeTable, infer_shapes
from trtplug.model.validate import model_warnings
from trtplug.rewrite.find import find_sites
from trtplug.rewrite.site import NearMiss, Site
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from trtplug.tensor import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Nodes by label with their work at the opt shapes, sites and near misses."""

    model: Model
    ranges: tuple[ShapeRange, ...]
    nodes: Mapping[str, NodeProto]
    reads: Mapping[str, tuple[str, ...]]
    writes: Mapping[str, tuple[str, ...]]
    sites: tuple[Site, ...]
    near_misses: tuple[NearMiss, ...]
    shapes: ShapeTable
    warnings: tuple[str, ...]
    """What is unusual about the model, one sentence each."""

    def dims(self, tensor: str) -> Sizes | None:
        """Sizes of an ONNX tensor at the opt shapes."""
        return self.shapes.dims(tensor)

    def flops(self, label: str) -> int | None:
        """Operations of a node at the opt shapes; None where unknown."""
        node = self.nodes.get(label)
        return None if node is None else node_flops(node, self.shapes)

    def is_matrix(self, label: str) -> bool:
        """Whether a node is a convolution or a matrix product."""
        node = self.nodes.get(label)
        return node is not None and unit_of(node) == "matrix"


def gather_facts(model: Model, ranges: tuple[ShapeRange, ...]) -> ModelFacts:
    """Facts of a model at the opt shapes of its inputs.

    Raises:
        NodeInvalidError: a node contradicts itself, or the shapes.
        ShapeError: the shapes leave a tensor without any element.
    """
    nodes = node_labels(model.proto.graph)
    sites, near_misses = find_sites(model)
    return ModelFacts(
        model=model,
        ranges=ranges,
        nodes=nodes,
        reads={label: tuple(n for n in node.input if n) for label, node in nodes.items()},
        writes={label: tuple(n for n in node.output if n) for label, node in nodes.items()},
        sites=sites,
        near_misses=near_misses,
        shapes=infer_shapes(model, {r.name: r.opt for r in ranges}),
        warnings=model_warnings(model),
    )
