"""Nodes as TensorRT gets them: a plugin's layer with packed weights, in place of an op's node.

They stand in the model that is built, and in no other: weights and bias are packed for a kernel, so
nothing but the plugin can read them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import NodeProto

LAYER_INPUTS: Mapping[str, tuple[str, ...]] = {
    "CBR": ("x", "weights", "bias"),
    "CBRResidual": ("x", "weights", "bias", "residual"),
    "CBRPair": ("x", "dw_weight", "dw_bias", "weights", "bias"),
    "CBRPairResidual": ("x", "dw_weight", "dw_bias", "weights", "bias", "residual"),
}
"""Type of the node -> its inputs, in the order of a kernel's arguments; the only output is y.

A quick plugin's inputs are those of a Python function, so a residual makes another type.
`dw_weight` and `dw_bias` are weights and bias of a pair's depthwise convolution.
"""

KEY_ATTRIBUTES = ("site_key_high", "site_key_low")
"""The site once more, as numbers: under NumPy 2 the bindings of TensorRT 10.9 to 10.13 misread
attributes of more than one element, strings too: the first element is repeated."""


def site_key(digest: str) -> tuple[int, int]:
    """The first 62 bits of a site's digest as two numbers that int32 holds."""
    bits = int(digest[:16], 16) >> 2
    return bits >> 31, bits & 0x7FFFFFFF


def layer_type(op: str, *, residual: bool) -> str:
    """Type of the node for `CBR` or `CBRPair`."""
    return f"{op}Residual" if residual else op


def plugin_layer_node(
    op: str, site: str, inputs: Sequence[str], output: str, name: str, *, residual: bool
) -> NodeProto:
    """The ONNX node of a plugin's layer.

    Args:
        op: `CBR` or `CBRPair`.
        site: digest of the site in the kit, `KitSite.digest`.
        inputs: names of tensors, in the order of `LAYER_INPUTS`; weights as packed (of any shape
            with that many elements), biases packed in FP32.
        output: name of y.
        name: of the node; TensorRT's layer gets it.
        residual: whether the last input is one.

    Raises:
        ValueError: too many or too few inputs.
    """
    from onnx import helper

    from trtplug.ops.cbr import DOMAIN, VERSION, plugin_node

    op_type = layer_type(op, residual=residual)
    wanted = LAYER_INPUTS[op_type]
    if len(inputs) != len(wanted):
        raise ValueError(f"{len(inputs)} inputs for {op_type}; it takes {', '.join(wanted)}")
    # `aot` asks for the ahead-of-time form, as TensorRT's own sample does; a creator that knows no
    # such field is not given it.
    values: dict[str, str | int] = {"site": site}
    values |= dict(zip(KEY_ATTRIBUTES, site_key(site), strict=True))
    values |= {"plugin_namespace": DOMAIN, "plugin_version": str(VERSION), "aot": 1}
    attributes = [helper.make_attribute(key, value) for key, value in values.items()]
    return plugin_node(op_type, inputs, output, name, "", attributes)
