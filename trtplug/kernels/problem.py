"""One fused convolution as kernels see it: what is fixed, and what the input's sizes may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.ops.cbr import CbrAttributes, output_shape
from trtplug.tensor import FLOATS, ShapeRange

if TYPE_CHECKING:
    from trtplug.tensor import Sizes


DYNAMIC_AXES = ("batch", "height", "width")
"""Axes that a kernel may take as arguments, in the order of the arguments."""

_PLACES = (0, 2, 3)
"""Where they stand in NCHW."""

ELEMENT_BYTES = {element.name: element.bytes for element in FLOATS}
"""Types of the op -> bytes of an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a kernel is generated for."""

    attributes: CbrAttributes
    outputs: int
    """Output channels."""
    dtype: str
    """`float`, `float16` or `bfloat16`: of x, weight, residual and y."""
    x: ShapeRange
    """Sizes of the input [batch, channels, height, width]; the channels are fixed."""

    def __post_init__(self) -> None:
        """Refuses what no CBR can be.

        Raises:
            ValueError: what does not fit.
        """
        if self.dtype not in ELEMENT_BYTES:
            raise ValueError(f"dtype {self.dtype!r} is none of {', '.join(ELEMENT_BYTES)}")
        if len({sizes[1] for sizes in (self.x.min, self.x.opt, self.x.max)}) != 1:
            raise ValueError(f"{self.x}: the channels must be fixed")
        if self.channels % self.attributes.group:
            raise ValueError(f"group {self.attributes.group} does not divide {self.channels}")
        for sizes in (self.x.min, self.x.opt, self.x.max):
            output_shape(sizes, self.weight_shape, self.attributes)

    @property
    def channels(self) -> int:
        """Input channels."""
        return self.x.opt[1]

    @property
    def group_channels(self) -> int:
        """Input channels of one group."""
        return self.channels // self.attributes.group

    @property
    def group_outputs(self) -> int:
        """Output channels of one group."""
        return self.outputs // self.attributes.group

    @property
    def taps(self) -> int:
        """Places of the kernel."""
        return self.attributes.kernel_shape[0] * self.attributes.kernel_shape[1]

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """[outputs, channels / group, kernel height, kernel width]."""
        return (self.outputs, self.group_channels, *self.attributes.kernel_shape)

    @property
    def has_residual(self) -> bool:
        """Whether a residual is an input."""
        return self.attributes.residual != "none"

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Axes whose size is an argument of the kernel, of `DYNAMIC_AXES`."""
        return tuple(
            name
            for name, place in zip(DYNAMIC_AXES, _PLACES, strict=True)
            if self.x.min[place] != self.x.max[place]
        )

    def arguments(self, sizes: Sizes) -> tuple[int, ...]:
        """The int32 arguments of a kernel at an input [batch, channels, height, width]."""
        by_name = dict(zip(DYNAMIC_AXES, (sizes[p] for p in _PLACES), strict=True))
        return tuple(by_name[name] for name in self.dynamic)

    def output(self, sizes: Sizes) -> Sizes:
        """Sizes of the output [batch, outputs, rows, columns] at an input."""
        shape = output_shape(sizes, self.weight_shape, self.attributes)
        return tuple(int(d or 0) for d in shape)


def padded(channels: int) -> int:
    """Elements that a pixel takes in HWC8."""
    return -(-channels // 8) * 8
