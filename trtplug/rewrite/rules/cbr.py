"""The rule for `trtplug::CBR`: a 2-D convolution with all that one kernel can take along.

From each convolution it walks down: scales and shifts go into weight and bias, an Add of a tensor
of the same shape becomes the residual, an activation ends the site, but for one residual after
it. Then it walks up: scales, shifts and zero padding before the convolution go into it too.

Of two convolutions that meet in one Add, the later one in the graph's order takes it: the other's
result is ready by then, so the fused op can stand where the Add stood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto

from trtplug.errors import NodeInvalidError
from trtplug.model.constants import Constant
from trtplug.model.convolution import Convolution, read_convolution
from trtplug.model.graph import Node, attributes
from trtplug.rewrite.activation import Activation, match_activation
from trtplug.rewrite.affine import IDENTITY, Affine, read_affine
from trtplug.rewrite.fold import fold_bias, fold_weight
from trtplug.rewrite.site import NearMiss, NearMissReason, Residual, Site, Stop

if TYPE_CHECKING:
    from trtplug.rewrite.scope import Scope

DTYPES: dict[int, str] = {
    TensorProto.FLOAT: "float",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
}

SUSPECT_SCALE = 1e6
"""Below it a folded float32 weight of a sane model cannot overflow, so weights need not be read."""

_ACTIVATIONS = frozenset((
    "Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax",
    "Mish", "PRelu", "Relu", "Selu", "Shrink", "Sigmoid", "Softmax", "Softplus", "Softsign",
    "Swish", "Tanh", "ThresholdedRelu",
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Match:
    """A site with all that the rewrite needs."""

    site: Site
    conv: Node
    nodes: tuple[Node, ...]
    before: Affine
    """On the input channels; its shift reaches every tap, padding included."""
    after: Affine
    """On the output channels."""
    weight: str
    bias: str
    """Empty where the convolution has none."""
    residual: str
    """Empty where there is none."""


@dataclass(slots=True)
class _Walk:
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


def match_downwards(conv: Node, scope: Scope) -> _Walk | NearMiss:
    """The convolution and what it takes along below it; or why it takes no part at all."""
    found = _start(conv, scope)
    if isinstance(found, NearMiss):
        return found
    walk = found
    while _step_down(walk, scope):
        pass
    if walk.activation.kind != "none" and not walk.residual:
        _take_residual_after(walk, scope)
    touched = _quantizer_below(walk, scope)
    if touched is not None:
        return NearMiss(conv=conv.label, reason=NearMissReason.QUANTIZED, node=touched.label)
    return walk


def _step_down(walk: _Walk, scope: Scope) -> bool:
    """Takes the next node along; False where the site ends."""
    reader = _only_reader(walk, scope)
    if reader is not None and _pass_through(reader, walk, scope):
        return True
    if reader is not None and not walk.residual and _fold_below(reader, walk, scope):
        return True
    if walk.stop is not None or _take_activation(walk, scope):
        return False
    if reader is not None and not walk.residual and _take_residual(reader, walk, scope):
        walk.position = "before_activation"
        return True
    _explain_stop(walk, scope)
    return False


def finish(walk: _Walk, scope: Scope) -> Match:
    """Adds what goes in from above, and states the site."""
    _fold_above(walk, scope)
    geometry, conv = walk.geometry, walk.conv
    nodes = tuple(sorted(walk.nodes, key=lambda n: n.position))
    site = Site(
        conv=conv.label,
        nodes=tuple(n.label for n in nodes),
        folded=tuple(n.label for n in sorted(walk.folded, key=lambda n: n.position)),
        activation=walk.activation.kind,
        alpha=walk.activation.alpha,
        beta=walk.activation.beta,
        minimum=walk.activation.minimum,
        maximum=walk.activation.maximum,
        residual=walk.position,
        kernel_shape=_pair(geometry.kernel_shape),
        strides=_pair(geometry.strides),
        pads=_four(walk.pads),
        dilations=_pair(geometry.dilations),
        group=geometry.group,
        channels=geometry.channels,
        channels_per_group=geometry.channels_per_group,
        dtype=walk.dtype,
        input=walk.input,
        output=walk.end,
        stop=walk.stop,
    )
    return Match(
        site=site,
        conv=conv,
        nodes=nodes,
        before=walk.before,
        after=walk.after,
        weight=conv.input(1),
        bias=conv.input(2),
        residual=walk.residual,
    )


def _pair(values: tuple[int, ...]) -> tuple[int, int]:
    return values[0], values[1]


def _four(values: tuple[int, ...]) -> tuple[int, int, int, int]:
    return values[0], values[1], values[2], values[3]


def _start(conv: Node, scope: Scope) -> _Walk | NearMiss:
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
    if weight.elem_type not in DTYPES:
        return miss(NearMissReason.DTYPE)
    bias = _bias(conv, geometry, scope)
    if bias is None and conv.input(2):
        return miss(NearMissReason.DYNAMIC_BIAS, scope.producer(conv.input(2)) or conv)
    if weight.overridable or (bias is not None and bias.overridable):
        return miss(NearMissReason.OVERRIDABLE)
    pads = _explicit_pads(conv, geometry, scope)
    if pads is None:
        return miss(NearMissReason.AUTO_PAD)
    return _Walk(
        conv=conv,
        geometry=geometry,
        dtype=DTYPES[weight.elem_type],
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


def _only_reader(walk: _Walk, scope: Scope) -> Node | None:
    """The one node that reads the site's end, where nothing else does."""
    readers = scope.graph.consumers.get(walk.end, ())
    if walk.end in scope.graph.outputs or len(readers) != 1:
        return None
    reader = readers[0]
    # A node whose subgraph captures the tensor reads it too, but not as an input.
    return reader if walk.end in reader.inputs and reader not in scope.claimed else None


def _advance(walk: _Walk, nodes: tuple[Node, ...], end: str) -> None:
    walk.nodes += nodes
    walk.end = end


def _pass_through(reader: Node, walk: _Walk, scope: Scope) -> bool:
    """Identity, and Dropout at inference."""
    if reader.is_op("Identity") and reader.outputs[0]:
        _advance(walk, (reader,), reader.outputs[0])
        return True
    if not reader.is_op("Dropout") or reader.input(0) != walk.end:
        return False
    mask = reader.outputs[1] if len(reader.outputs) > 1 else ""
    mask_read = mask and (scope.graph.consumers.get(mask) or mask in scope.graph.outputs)
    if mask_read or not _is_inference(reader, scope):
        walk.stop = _stop(NearMissReason.DROPOUT, reader)
        return False
    _advance(walk, (reader,), reader.outputs[0])
    return True


def _is_inference(dropout: Node, scope: Scope) -> bool:
    if not dropout.input(2):
        return True
    mode = scope.constants.get(dropout.input(2))
    return mode is not None and not mode.overridable and not bool(mode.read().reshape(-1)[:1].any())


def _fold_below(reader: Node, walk: _Walk, scope: Scope) -> bool:
    """A scale and shift, into weight and bias."""
    found = read_affine(
        reader, walk.end, walk.geometry.channels, scope.graph, scope.constants, scope.opset
    )
    if isinstance(found, NearMissReason):
        walk.stop = _stop(found, reader)
        return False
    if found is None:
        return False
    after = walk.after.then(found)
    reason = _fold_problem(walk, IDENTITY, after)
    if reason is not None:
        walk.stop = _stop(reason, reader)
        return False
    walk.after = after
    walk.folded.append(reader)
    _advance(walk, (reader,), reader.outputs[0])
    return True


def _fold_problem(walk: _Walk, before: Affine, after: Affine) -> NearMissReason | None:
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


def _take_activation(walk: _Walk, scope: Scope) -> bool:
    found = match_activation(walk.end, scope.graph, scope.constants, walk.dtype)
    if found is None or any(n in scope.claimed for n in found.nodes):
        return False
    walk.activation = found.activation
    _advance(walk, found.nodes, found.output)
    return True


def _take_residual(reader: Node, walk: _Walk, scope: Scope) -> bool:
    """An Add, or a Sum of two, with a tensor of the same shape."""
    if not reader.is_op("Add", "Sum") or len(reader.inputs) != 2:
        return False
    other = reader.inputs[1 if reader.inputs[0] == walk.end else 0]
    if not other or other == walk.end or scope.constants.get(other) is not None:
        return False
    maker = scope.producer(other)
    if maker is not None and maker.is_op("DequantizeLinear"):
        walk.stop = _stop(NearMissReason.QUANTIZED, maker)
        return False
    own, others = scope.extents.get(walk.conv.outputs[0]), scope.extents.get(other)
    if own is None or own != others:
        walk.stop = _stop(NearMissReason.RESIDUAL_SHAPE, reader)
        return False
    walk.residual = other
    _advance(walk, (reader,), reader.outputs[0])
    return True


def _take_residual_after(walk: _Walk, scope: Scope) -> None:
    reader = _only_reader(walk, scope)
    if reader is not None and _take_residual(reader, walk, scope):
        walk.position = "after_activation"


def _stop(reason: NearMissReason, node: Node) -> Stop:
    return Stop(reason=reason, node=node.label, op_type=node.op_type)


def _explain_stop(walk: _Walk, scope: Scope) -> None:
    if walk.stop is None:
        walk.stop = _why_stop(walk, scope)


def _why_stop(walk: _Walk, scope: Scope) -> Stop | None:
    """Why a site without activation ends here; None where it could want nothing below."""
    readers = scope.graph.consumers.get(walk.end, ())
    if walk.end in scope.graph.outputs:
        return _stop(NearMissReason.GRAPH_OUTPUT, walk.nodes[-1])
    if len(readers) > 1:
        return _stop(NearMissReason.MULTI_CONSUMER, readers[0])
    if not readers:
        return None
    reader = readers[0]
    if reader in scope.claimed and reader.is_op("Add", "Sum"):
        return _stop(NearMissReason.RESIDUAL_TAKEN, reader)
    if reader.is_op("Cast"):
        return _stop(NearMissReason.TYPE_CHANGE, reader)
    if reader.is_op("Clip") and any(
        n and scope.constants.scalar(n) is None for n in reader.inputs[1:]
    ):
        return _stop(NearMissReason.DYNAMIC_CLIP, reader)
    if reader.is_op(*_ACTIVATIONS):
        return _stop(NearMissReason.ACTIVATION, reader)
    return None


def _quantizer_below(walk: _Walk, scope: Scope) -> Node | None:
    readers = scope.graph.consumers.get(walk.end, ())
    return next((n for n in readers if n.is_op("QuantizeLinear", "DynamicQuantizeLinear")), None)


def _fold_above(walk: _Walk, scope: Scope) -> None:
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


def _scale_above(
    maker: Node, channels: int, walk: _Walk, scope: Scope
) -> tuple[str, Affine] | None:
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
    if _fold_problem(walk, before, walk.after) is not None:
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
