"""ONNX Runtime's outputs of a model, to hold an engine against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def reference_of(model: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random inputs, and outputs of ONNX Runtime on the CPU, both by name."""
    import onnx

    from trtplug.measure.reference import Reference, random_feeds
    from trtplug.tensor import TensorSpec

    specs, sizes = [], {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        dims = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        kind = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        specs.append(TensorSpec(name=value.name, dtype=kind, shape=dims))
        sizes[value.name] = dims
    feeds = random_feeds(specs, sizes, 0)
    return feeds, Reference(model).run(feeds)
