"""What a search for pairs finds: two sites that one kernel can take, or why not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trtplug.ops.cbr_pair import CbrPairAttributes
from trtplug.rewrite.site import Site


class PairMissReason(str, Enum):
    """Why a grouped convolution is not the first of a pair."""

    sentence: str
    """One sentence for people, as in docs/plugin.md."""

    def __new__(cls, code: str, sentence: str) -> PairMissReason:
        """Members are their code; the sentence is an attribute."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

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
