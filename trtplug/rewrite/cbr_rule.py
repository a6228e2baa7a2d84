"""The rule for `trtplug::CBR`: a 2-D convolution with all that one kernel can take along.

From each convolution it walks down: scales and shifts go into weight and bias, an Add of a tensor
of the same shape becomes the residual, an activation ends the site, but for one residual after
it. Then it walks up: scales, shifts and zero padding before the convolution go into it too.

Of two convolutions that meet in one Add, the later one in the graph's order takes it: the other's
result is ready by then, so the fused op can stand where the Add stood.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.model.graph import Node
from trtplug.rewrite.activation import match_activation
from trtplug.rewrite.cbr_walk import Walk, fold_above, fold_problem, start
from trtplug.rewrite.fold import IDENTITY, Affine, read_affine
from trtplug.rewrite.site import NearMiss, NearMissReason, Site, Stop

if TYPE_CHECKING:
    from trtplug.rewrite.scope import Scope


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


def match_downwards(conv: Node, scope: Scope) -> Walk | NearMiss:
    """The convolution and what it takes along below it; or why it takes no part at all."""
    found = start(conv, scope)
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


def _step_down(walk: Walk, scope: Scope) -> bool:
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


def finish(walk: Walk, scope: Scope) -> Match:
    """Adds what goes in from above, and states the site."""
    fold_above(walk, scope)
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


def _only_reader(walk: Walk, scope: Scope) -> Node | None:
    """The one node that reads the site's end, where nothing else does."""
    readers = scope.graph.consumers.get(walk.end, ())
    if walk.end in scope.graph.outputs or len(readers) != 1:
        return None
    reader = readers[0]
    # A node whose subgraph captures the tensor reads it too, but not as an input.
    return reader if walk.end in reader.inputs and reader not in scope.claimed else None


def _advance(walk: Walk, nodes: tuple[Node, ...], end: str) -> None:
    walk.nodes += nodes
    walk.end = end


def _pass_through(reader: Node, walk: Walk, scope: Scope) -> bool:
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


def _fold_below(reader: Node, walk: Walk, scope: Scope) -> bool:
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
    reason = fold_problem(walk, IDENTITY, after)
    if reason is not None:
        walk.stop = _stop(reason, reader)
        return False
    walk.after = after
    walk.folded.append(reader)
    _advance(walk, (reader,), reader.outputs[0])
    return True


def _take_activation(walk: Walk, scope: Scope) -> bool:
    found = match_activation(walk.end, scope.graph, scope.constants, walk.dtype)
    if found is None or any(n in scope.claimed for n in found.nodes):
        return False
    walk.activation = found.activation
    _advance(walk, found.nodes, found.output)
    return True


def _take_residual(reader: Node, walk: Walk, scope: Scope) -> bool:
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


def _take_residual_after(walk: Walk, scope: Scope) -> None:
    reader = _only_reader(walk, scope)
    if reader is not None and _take_residual(reader, walk, scope):
        walk.position = "after_activation"


def _stop(reason: NearMissReason, node: Node) -> Stop:
    return Stop(reason=reason, node=node.label, op_type=node.op_type)


def _explain_stop(walk: Walk, scope: Scope) -> None:
    if walk.stop is None:
        walk.stop = _why_stop(walk, scope)


def _why_stop(walk: Walk, scope: Scope) -> Stop | None:
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


def _quantizer_below(walk: Walk, scope: Scope) -> Node | None:
    readers = scope.graph.consumers.get(walk.end, ())
    return next((n for n in readers if n.is_op("QuantizeLinear", "DynamicQuantizeLinear")), None)
