"""What goes into a convolution from above: scales, shifts and zero padding before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.model.graph import Node, attributes
from trtplug.rewrite.affine import Affine, read_affine
from trtplug.rewrite.rules.cbr_walk import Walk, fold_problem

if TYPE_CHECKING:
    from trtplug.rewrite.scope import Scope


def fold_above(walk: Walk, scope: Scope) -> None:
    """Scales, shifts and zero padding before the convolution.

    The nodes stay where others read their results too; what the convolution reads is left as it is.
    """
    channels = walk.geometry.channels_per_group * walk.geometry.group
    while (
        maker := scope.graph.producer.get(walk.input)
    ) is not None and maker not in scope.claimed:
        if maker.is_op("Pad"):
            pads = _spatial_zeros(maker, scope)
            if pads is None:
                return
            walk.pads = tuple(a + b for a, b in zip(walk.pads, pads, strict=True))
            source = maker.input(0)
        elif (step := _scale_above(maker, channels, walk, scope)) is not None:
            source, walk.before = step
        else:
            return
        origin = scope.producer(source)
        if origin is not None and origin.is_op("DequantizeLinear"):
            return
        walk.nodes.append(maker)
        walk.folded.append(maker)
        walk.input = source


def _scale_above(maker: Node, channels: int, walk: Walk, scope: Scope) -> tuple[str, Affine] | None:
    """The tensor that `maker` scales and shifts, and the affine step from it to the convolution."""
    sources = [n for n in maker.inputs if n and scope.constants.get(n) is None]
    if len(sources) != 1:
        return None
    source = sources[0]
    extents = scope.extents.get(source)
    # Without the input's rank and channels a constant may widen it, and then it is no scale of it.
    if extents is None or len(extents) != 4 or extents[1] != channels:
        return None
    found = read_affine(maker, source, channels, scope.graph, scope.constants, scope.opset)
    if not isinstance(found, Affine) or (np.any(found.shift) and any(walk.pads)):
        return None
    before = found.then(walk.before)
    if fold_problem(walk, before, walk.after) is not None:
        return None
    return source, before


def _spatial_zeros(pad: Node, scope: Scope) -> tuple[int, ...] | None:
    """Top, left, bottom and right of a Pad with zeros on height and width alone."""
    given: dict[str, Any] = attributes(pad.proto)
    if given.get("mode", "constant") != "constant" or given.get("value", 0.0) != 0.0:
        return None
    if pad.input(2) and scope.constants.scalar(pad.input(2)) != 0.0:
        return None
    if pad.input(3):
        return None
    pads = given.get("pads") if scope.opset < 11 else scope.constants.numbers(pad.input(1))
    if pads is None or len(pads) != 8 or min(pads) < 0 or any(pads[i] for i in (0, 1, 4, 5)):
        return None
    return pads[2], pads[3], pads[6], pads[7]
