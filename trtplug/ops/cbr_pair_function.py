"""The body of a CBRPair node in standard ONNX operators: that of one CBR after the other."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from onnx import FunctionProto, helper

from trtplug.ops import cbr_function
from trtplug.ops.cbr import DOMAIN
from trtplug.ops.cbr_function import Body, add_cbr
from trtplug.ops.cbr_pair import OP_TYPE, attribute_names

if TYPE_CHECKING:
    from trtplug.ops.cbr_pair import CbrPairAttributes


@functools.lru_cache(maxsize=256)
def overload_name(given: CbrPairAttributes, dtype: str) -> str:
    """The whole configuration: the names of both CBRs."""
    both = (given.depthwise, given.pointwise)
    return "__".join(cbr_function.overload_name(one, dtype) for one in both)


def make_function(given: CbrPairAttributes, dtype: str, opset: int) -> FunctionProto:
    """The function for one configuration; arguments as `cbr_function.make_function` has them."""
    body = Body(dtype, opset)
    between = add_cbr(body, given.depthwise, "x", "w", "b")
    add_cbr(body, given.pointwise, between, "pointwise_w", "pointwise_b")
    body.nodes[-1].output[0] = "y"
    residual = ["residual"] if given.pointwise.residual != "none" else []
    function: FunctionProto = helper.make_function(
        DOMAIN,
        OP_TYPE,
        ["x", "w", "b", "pointwise_w", "pointwise_b", *residual],
        ["y"],
        body.nodes,
        [helper.make_opsetid("", opset)],
        list(attribute_names()),
    )
    function.overload = overload_name(given, dtype)
    return function
