"""Sizes of the builder's tensors at the opt shapes.

The builder lists `-1` for a dynamic axis. The ONNX nodes in a layer, and the layers beside it, tell
what it stands for; where they leave a choice, the answer is None, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trtplug.backends.log import EngineLayer, LayerTensor
    from trtplug.tensor import Sizes

    Known = Mapping[str, Sizes]


def dims_at_opt(
    layers: tuple[EngineLayer, ...],
    nodes: tuple[tuple[str, ...], ...],
    onnx_dims: Callable[[str], Sizes | None],
    reads: Mapping[str, tuple[str, ...]],
    writes: Mapping[str, tuple[str, ...]],
) -> dict[str, Sizes]:
    """Name of a layer's tensor -> its sizes, for those that can be told.

    Args:
        layers: the engine's layers.
        nodes: labels of the ONNX nodes in each of them.
        onnx_dims: sizes of an ONNX tensor at the opt shapes.
        reads: label of a node -> the ONNX tensors it reads.
        writes: label of a node -> the ONNX tensors it writes.
    """
    known = _told_at_once(layers, onnx_dims)
    for layer, labels in zip(layers, nodes, strict=True):
        _learn(known, layer.outputs, _sizes(labels, writes, onnx_dims))
    for layer, labels in zip(layers, nodes, strict=True):
        _learn(known, layer.inputs, _sizes(labels, reads, onnx_dims))
    _pass_through(layers, nodes, known)
    return known


def _told_at_once(
    layers: tuple[EngineLayer, ...], onnx_dims: Callable[[str], Sizes | None]
) -> dict[str, Sizes]:
    """Tensors without a dynamic axis, and those that bear the name of an ONNX tensor."""
    known: dict[str, Sizes] = {}
    for layer in layers:
        for tensor in (*layer.inputs, *layer.constants, *layer.outputs):
            if -1 not in tensor.dims:
                known[tensor.name] = tensor.dims
            elif (own := onnx_dims(tensor.name)) is not None and fits(tensor.dims, own):
                known[tensor.name] = own
    return known


def _learn(
    known: dict[str, Sizes], tensors: Iterable[LayerTensor], candidates: Iterable[Sizes]
) -> None:
    """Adds each tensor that exactly one of the candidate sizes fits."""
    options = set(candidates)
    for tensor in tensors:
        if tensor.name not in known:
            found = {o for o in options if fits(tensor.dims, o)}
            if len(found) == 1:
                known[tensor.name] = found.pop()


def fits(pattern: tuple[int, ...], sizes: Sizes) -> bool:
    """Whether sizes agree with dims in which -1 stands for any size."""
    return len(pattern) == len(sizes) and all(
        p in (-1, s) for p, s in zip(pattern, sizes, strict=True)
    )


def _sizes(
    labels: tuple[str, ...],
    tensors: Mapping[str, tuple[str, ...]],
    onnx_dims: Callable[[str], Sizes | None],
) -> Iterable[Sizes]:
    found = (onnx_dims(name) for label in labels for name in tensors.get(label, ()))
    return (sizes for sizes in found if sizes is not None)


def _pass_through(
    layers: tuple[EngineLayer, ...], nodes: tuple[tuple[str, ...], ...], known: dict[str, Sizes]
) -> None:
    """A layer without ONNX nodes that keeps the dims of its one input keeps its sizes too."""
    for layer, labels in zip(layers, nodes, strict=True):
        if not labels and len(layer.inputs) == len(layer.outputs) == 1:
            source, result = layer.inputs[0], layer.outputs[0]
            if source.dims == result.dims:
                for one, other in ((source, result), (result, source)):
                    if one.name in known:
                        known.setdefault(other.name, known[one.name])
