"""One fused pair as kernels see it: two problems, the second on what the first makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.problem import Problem
from trtplug.ops.cbr_pair import CbrPairAttributes
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from trtplug.tensor import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class PairProblem:
    """What a kernel is generated for."""

    attributes: CbrPairAttributes
    outputs: int
    """Output channels of the pointwise convolution."""
    dtype: str
    """`float`, `float16` or `bfloat16`: of x, both weights, residual and y."""
    x: ShapeRange
    """Sizes of the input [batch, channels, height, width]; the channels are fixed."""

    def __post_init__(self) -> None:
        """Refuses what no CBRPair can be.

        Raises:
            ValueError: what does not fit.
        """
        if self.attributes.depthwise.group != self.channels:
            raise ValueError(
                f"group {self.attributes.depthwise.group} on {self.channels} channels is not "
                "depthwise"
            )
        assert self.pointwise.channels == self.channels  # Both problems have been checked as well.

    @property
    def channels(self) -> int:
        """Channels of the input, and between the convolutions."""
        return self.x.opt[1]

    @property
    def depthwise(self) -> Problem:
        """The first convolution alone."""
        return Problem(
            attributes=self.attributes.depthwise,
            outputs=self.channels,
            dtype=self.dtype,
            x=self.x,
        )

    @property
    def pointwise(self) -> Problem:
        """The second convolution alone."""
        first = self.depthwise
        least, usual, most = map(first.output, (self.x.min, self.x.opt, self.x.max))
        return Problem(
            attributes=self.attributes.pointwise,
            outputs=self.outputs,
            dtype=self.dtype,
            x=ShapeRange(name="x", min=least, opt=usual, max=most),
        )

    @property
    def has_residual(self) -> bool:
        """Whether a residual is an input."""
        return self.attributes.pointwise.residual != "none"

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Axes of x whose size is an argument of the kernel."""
        return self.depthwise.dynamic

    def arguments(self, sizes: Sizes) -> tuple[int, ...]:
        """The int32 arguments of a kernel at an input [batch, channels, height, width]."""
        return self.depthwise.arguments(sizes)

    def output(self, sizes: Sizes) -> Sizes:
        """Sizes of the output [batch, outputs, rows, columns] at an input."""
        batch, _, rows, columns = self.depthwise.output(sizes)
        return (batch, self.outputs, rows, columns)
