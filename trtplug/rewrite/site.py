"""What a search finds: sites, near misses, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np

from trtplug.ops.cbr import UNBOUNDED, CbrAttributes
from trtplug.ops.cbr_pair import CbrPairAttributes


def cbr_attributes(site: Site) -> CbrAttributes:
    """The attributes of the CBR node that stands for a site."""
    return CbrAttributes(
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        pads=site.pads,
        dilations=site.dilations,
        group=site.group,
        activation=site.activation,
        alpha=_float32(site.alpha),
        beta=_float32(site.beta),
        min=_float32(max(site.minimum, -UNBOUNDED)),
        max=_float32(min(site.maximum, UNBOUNDED)),
        residual=site.residual,
    )


def _float32(value: float) -> float:
    """What an attribute holds: the overload's name must say the same."""
    return float(np.float32(value))


Residual = Literal["none", "before_activation", "after_activation"]


class _Reason(str, Enum):
    """A code with a sentence."""

    sentence: str
    """One sentence for people, as in docs/plugin.md."""

    def __new__(cls, code: str, sentence: str) -> _Reason:
        """Members are their code; the sentence is an attribute."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member


class NearMissReason(_Reason):
    """Why a convolution is no site, or why a site ends where it does.

    A reason given to a near miss keeps the convolution itself out; given to a site, it says why the
    site does not reach further down (`Site.stop`).
    """

    RANK = ("rank", "Not a 2-D convolution.")
    DTYPE = ("dtype", "Weight dtype is not float, float16 or bfloat16.")
    OPSET = ("opset", "The model's opset is below 7, which has other broadcasting rules.")
    DYNAMIC_WEIGHT = ("dynamic_weight", "The weight is not constant.")
    DYNAMIC_BIAS = ("dynamic_bias", "The convolution's bias is not constant.")
    OVERRIDABLE = (
        "overridable",
        "A weight or parameter is an initializer and also a graph input, so it can be replaced at "
        "run time; --fold-overridable treats it as constant.",
    )
    QUANTIZED = (
        "quantized",
        "The convolution is quantized (QuantizeLinear or DequantizeLinear beside it).",
    )
    AUTO_PAD = (
        "auto_pad",
        "auto_pad with a stride above 1 needs a fixed input height and width.",
    )
    IN_FUNCTION = ("in_function", "The convolution is inside a local function of the model.")
    MULTI_CONSUMER = ("multi_consumer", "The tensor is read by more than one node.")
    GRAPH_OUTPUT = ("graph_output", "The tensor is a graph output.")
    ACTIVATION = ("activation", "The next node is not a supported activation.")
    DYNAMIC_CLIP = ("dynamic_clip", "The bounds of the Clip are not constant.")
    DYNAMIC_PARAMETER = (
        "dynamic_parameter",
        "A scale, shift or normalisation parameter is not constant.",
    )
    PER_CHANNEL = (
        "per_channel",
        "The constant varies along height or width, or broadcasts the tensor to a larger shape.",
    )
    BATCH_STATISTICS = (
        "batch_statistics",
        "BatchNormalization runs in training mode, on batch statistics; export the model again in "
        "evaluation mode.",
    )
    DROPOUT = ("dropout", "The Dropout is in training mode, or its mask is read.")
    RESIDUAL_SHAPE = (
        "residual_shape",
        "The other input of the Add may not have the convolution's output shape.",
    )
    RESIDUAL_TAKEN = ("residual_taken", "The Add belongs to the site of another convolution.")
    TYPE_CHANGE = ("type_change", "A Cast to another type follows.")
    FP16_RANGE = ("fp16_range", "The folded weights would exceed the float16 range.")
    NOT_FINITE = ("not_finite", "The folded weights would contain infinity or NaN.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a site does not reach further."""

    reason: NearMissReason
    node: str
    """Label of the node in the way; of the last node inside where a graph output is in the way."""
    op_type: str
    """Of that node."""

    def __str__(self) -> str:
        if self.reason is NearMissReason.ACTIVATION:
            return f"activation:{self.op_type}"
        return str(self.reason.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A convolution with all that one fused kernel can take along."""

    conv: str
    """Label of the convolution."""
    nodes: tuple[str, ...]
    """Labels of all nodes that the fused op replaces, in the graph's order."""
    folded: tuple[str, ...]
    """Those of `nodes` that went into weight and bias."""
    activation: str
    alpha: float
    beta: float
    minimum: float
    maximum: float
    residual: Residual
    kernel_shape: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    """Top, left, bottom, right."""
    dilations: tuple[int, int]
    group: int
    channels: int
    """Output channels."""
    channels_per_group: int
    dtype: str
    input: str
    """Tensor that the fused op reads."""
    output: str
    """Tensor that it makes."""
    stop: Stop | None
    """Why it ends there; None where an activation or a residual after it ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """A convolution that is no site."""

    conv: str
    reason: NearMissReason
    node: str
    """Label of the node that is in the way; the convolution's own where it is itself."""


class PairMissReason(_Reason):
    """Why a grouped convolution is not the first of a pair."""

    NOT_DEPTHWISE = (
        "not_depthwise",
        "A grouped convolution that is not depthwise.",
    )
    RESIDUAL = ("residual", "The depthwise convolution has a residual.")
    GRAPH_OUTPUT = (
        "graph_output",
        "The tensor between the convolutions is a graph output.",
    )
    MULTI_CONSUMER = (
        "multi_consumer",
        "Other nodes also read the tensor between the convolutions.",
    )
    NO_CONSUMER = ("no_consumer", "Nothing reads the depthwise convolution's result.")
    OTHER_OP = ("other_op", "The next node is not a convolution, or is a near miss.")
    TYPE_CHANGE = ("type_change", "The two convolutions have different types.")
    NOT_POINTWISE = (
        "not_pointwise",
        "The next convolution is not 1x1 with one group, stride 1 and no padding.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A depthwise site, and the pointwise site that alone reads it."""

    depthwise: Site
    pointwise: Site
    attributes: CbrPairAttributes
    """Those of the CBRPair node."""

    @property
    def label(self) -> str:
        """Both convolutions, such as `dw+pw`."""
        return f"{self.depthwise.conv}+{self.pointwise.conv}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMiss:
    """A site with groups that is not the first of a pair."""

    conv: str
    reason: PairMissReason
    node: str
    """Label of the node that is in the way; the convolution's own where it is itself."""
