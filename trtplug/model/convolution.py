"""The geometry of one Conv node: what its attributes say, checked against its weight.

Defaults are those of the ONNX standard: strides and dilations of 1, no padding, one group, and the
kernel's size from the weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import NodeInvalidError
from trtplug.model.graph import Node, attributes

if TYPE_CHECKING:
    from collections.abc import Sequence

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """What a Conv computes; an entry for each spatial axis, in pads all begins, then all ends."""

    channels: int
    """Output channels, M."""
    channels_per_group: int
    """Input channels of one group, C / group."""
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    """Zeros where `auto_pad` decides."""
    dilations: tuple[int, ...]
    group: int
    auto_pad: str

    @property
    def extents(self) -> tuple[int, ...]:
        """Input pixels that one output pixel spans on each axis: `dilation * (kernel - 1) + 1`."""
        return tuple(
            d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel_shape, strict=True)
        )


def read_convolution(node: Node, weight: Sequence[int], model: str) -> Convolution:
    """The geometry of a Conv whose weight has dimensions `weight` [M, C / group, kernel...].

    Raises:
        NodeInvalidError: attributes that contradict the weight or each other; both are named.
    """
    given = attributes(node.proto)
    spatial = len(weight) - 2

    def fail(problem: str) -> NodeInvalidError:
        return NodeInvalidError(path=model, node=node.label, op_type=node.op_type, problem=problem)

    if spatial < 1:
        raise fail(
            f"its weight has {len(weight)} dimensions, {list(weight)}; at least 3 are needed"
        )
    if min(weight) < 1:
        raise fail(f"its weight has an empty axis: {list(weight)}")
    kernel = tuple(given.get("kernel_shape") or weight[2:])
    if kernel != tuple(weight[2:]):
        raise fail(f"kernel_shape {list(kernel)} contradicts the weight {list(weight)}")
    group = given.get("group", 1)
    if group < 1 or weight[0] % group:
        raise fail(f"group {group} does not divide the {weight[0]} output channels of its weight")
    auto_pad = given.get("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        raise fail(f"auto_pad {auto_pad!r} is none of {', '.join(AUTO_PADS)}")
    values = {}
    for name, (length, least) in _lists(spatial).items():
        value = tuple(given.get(name) or (least,) * length)
        if problem := _list_problem(value, length, least, spatial):
            raise fail(f"{name} {list(value)} {problem}")
        values[name] = value
    explicit = auto_pad == "NOTSET"
    if not explicit and any(values["pads"]):
        # The standard forbids both; ONNX Runtime, TensorRT and onnx each take another one of them.
        raise fail(f"auto_pad {auto_pad} and pads {list(values['pads'])} contradict each other")
    return Convolution(
        channels=weight[0],
        channels_per_group=weight[1],
        kernel_shape=kernel,
        strides=values["strides"],
        pads=values["pads"] if explicit else (0,) * (2 * spatial),
        dilations=values["dilations"],
        group=group,
        auto_pad=auto_pad,
    )


def _lists(spatial: int) -> dict[str, tuple[int, int]]:
    """Attribute -> how many values it has, and the least of them, which is the default too."""
    return {"strides": (spatial, 1), "dilations": (spatial, 1), "pads": (2 * spatial, 0)}


def _list_problem(value: tuple[int, ...], length: int, least: int, spatial: int) -> str:
    if len(value) != length:
        return f"has {len(value)} values; {length} are needed for {spatial} spatial axes"
    return f"holds a value below {least}" if min(value) < least else ""
