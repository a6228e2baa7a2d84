"""A site under construction: how one begins, or why a convolution can be none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.errors import NodeInvalidError
from trtplug.model.constants import Constant
from trtplug.model.convolution import Convolution, read_convolution
from trtplug.model.graph import Node, attributes
from trtplug.rewrite.activation import Activation
from trtplug.rewrite.fold import IDENTITY, Affine, fold_bias, fold_weight, read_affine
from trtplug.rewrite.site import NearMiss, NearMissReason, Residual, Stop
from trtplug.tensor import FLOATS, find_element_type

if TYPE_CHECKING:
    from trtplug.rewrite.scope import Scope


SUSPECT_SCALE = 1e6
"""Below it a folded float32 weight of a sane model cannot overflow, so weights need not be read."""


@dataclass(slots=True)
class Walk:
    """A site under construction: where it ends, and what is in it."""

    conv: Node
    geometry: Convolution
    dtype: str
    weight: Constant
    bias: Constant | None
    end: str
    nodes: list[Node]
    folded: list[Node] = field(default_factory=list)
    after: Affine = IDENTITY
    before: Affine = IDENTITY
    input: str = ""
    pads: tuple[int, ...] = ()
    residual: str = ""
    position: Residual = "none"
    activation: Activation = field(default_factory=lambda: Activation(kind="none"))
    stop: Stop | None = None


def start(conv: Node, scope: Scope) -> Walk | NearMiss:
    """The bare convolution, where the op can compute it."""

    def miss(reason: NearMissReason, node: Node = conv) -> NearMiss:
        return NearMiss(conv=conv.label, reason=reason, node=node.label)

    if scope.opset < 7:
        return miss(NearMissReason.OPSET)
    quantizer = _quantizer_above(conv, scope)
    if quantizer is not None:
        return miss(NearMissReason.QUANTIZED, quantizer)
    weight = scope.constants.get(conv.input(1))
    if weight is None:
        return miss(NearMissReason.DYNAMIC_WEIGHT, scope.producer(conv.input(1)) or conv)
    geometry = read_convolution(conv, weight.dims, scope.path)
    if len(weight.dims) != 4:
        return miss(NearMissReason.RANK)
    element = find_element_type(weight.elem_type)
    if element is None or element not in FLOATS:
        return miss(NearMissReason.DTYPE)
    bias = _bias(conv, geometry, scope)
    if bias is None and conv.input(2):
        return miss(NearMissReason.DYNAMIC_BIAS, scope.producer(conv.input(2)) or conv)
    if weight.overridable or (bias is not None and bias.overridable):
        return miss(NearMissReason.OVERRIDABLE)
    pads = _explicit_pads(conv, geometry, scope)
    if pads is None:
        return miss(NearMissReason.AUTO_PAD)
    return Walk(
        conv=conv,
        geometry=geometry,
        dtype=element.name,
        weight=weight,
        bias=bias,
        end=conv.outputs[0],
        nodes=[conv],
        input=conv.input(0),
        pads=pads,
    )


def _quantizer_above(conv: Node, scope: Scope) -> Node | None:
    makers = [m for m in map(scope.producer, conv.inputs) if m is not None]
    kinds = ("DequantizeLinear", "DynamicQuantizeLinear")
    return next((m for m in makers if m.is_op(*kinds)), None)


def _bias(conv: Node, geometry: Convolution, scope: Scope) -> Constant | None:
    """The constant bias; an error where its size does not fit."""
    bias = scope.constants.get(conv.input(2))
    if bias is not None and bias.dims != (geometry.channels,):
        problem = f"its bias is {list(bias.dims)}; its weight needs {[geometry.channels]}"
        raise NodeInvalidError(path=scope.path, node=conv.label, op_type="Conv", problem=problem)
    return bias


def _explicit_pads(conv: Node, geometry: Convolution, scope: Scope) -> tuple[int, ...] | None:
    """The four pads; None where `auto_pad` makes them depend on an unknown size."""
    if not geometry.auto_pad.startswith("SAME"):
        return geometry.pads
    begins, ends = [], []
    sizes = None
    for axis, stride in enumerate(geometry.strides):
        total = geometry.extents[axis] - stride
        if stride > 1:
            sizes = sizes or scope.extents.get(conv.input(0))
            size = sizes[axis + 2] if sizes is not None and len(sizes) == 4 else None
            if not isinstance(size, int):
                return None
            total = (-(-size // stride) - 1) * stride + geometry.extents[axis] - size
        total = max(0, total)
        less, more = total // 2, total - total // 2
        upper = geometry.auto_pad == "SAME_UPPER"
        begins.append(less if upper else more)
        ends.append(more if upper else less)
    return (*begins, *ends)


def fold_problem(walk: Walk, before: Affine, after: Affine) -> NearMissReason | None:
    """Why weight and bias cannot be folded with these; the weight is read only in case of doubt."""
    if not (before.is_finite and after.is_finite):
        return NearMissReason.NOT_FINITE
    largest = max(
        float(np.abs(a).max()) for a in (before.scale, before.shift, after.scale, after.shift)
    )
    if walk.dtype != "float16" and largest < SUSPECT_SCALE:
        return None
    weight = fold_weight(walk.weight, walk.geometry, before, after)
    bias = fold_bias(walk.weight, walk.bias, walk.geometry, before, after)
    for folded in (weight, bias):
        if not np.isfinite(folded.astype(np.float32)).all():
            half = walk.dtype == "float16"
            return NearMissReason.FP16_RANGE if half else NearMissReason.NOT_FINITE
    return None


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
