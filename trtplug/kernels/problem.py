"""What kernels compute: one fused convolution, or a pair of them, and the range of input sizes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from trtplug.ops import cbr, cbr_pair
from trtplug.ops.cbr import CbrAttributes
from trtplug.ops.cbr_pair import CbrPairAttributes
from trtplug.tensor import FLOATS, ShapeRange, window_positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]
    """Of NumPy, any dtype."""


_AXES = {"batch": 0, "height": 2, "width": 3}
"""Axes that a kernel may take as arguments, in that order -> their indices in NCHW."""

ELEMENT_BYTES = {element.name: element.bytes for element in FLOATS}
"""Types of the op -> bytes of an element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(ABC):
    """What a kernel is generated for, of either op."""

    op: ClassVar[str]

    outputs: int
    """Output channels."""
    dtype: str
    """`float`, `float16` or `bfloat16`: of x, weights, residual and y."""
    x: ShapeRange
    """Sizes of the input [batch, channels, height, width]; the channels are fixed."""

    @property
    @abstractmethod
    def convs(self) -> tuple[KernelProblem, ...]:
        """The convolutions, in the order that they run."""

    @property
    def channels(self) -> int:
        """Input channels."""
        return self.x.opt[1]

    @property
    def has_residual(self) -> bool:
        """Whether a residual is an input."""
        return self.convs[-1].attributes.residual != "none"

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Axes of x whose size is an argument of the kernel: of batch, height and width."""
        return tuple(n for n, axis in _AXES.items() if self.x.min[axis] != self.x.max[axis])

    @property
    def extents(self) -> tuple[str, ...]:
        """Batch, height and width in CUDA: each a number, or the name of the argument."""
        sizes = {name: str(self.x.opt[axis]) for name, axis in _AXES.items()}
        return tuple(name if name in self.dynamic else size for name, size in sizes.items())

    def arguments(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """The int32 arguments of a kernel at an input [batch, channels, height, width]."""
        return tuple(sizes[_AXES[name]] for name in self.dynamic)

    def output(self, sizes: Sequence[Any]) -> tuple[Any, int, Any, Any]:
        """Sizes of the output [batch, outputs, rows, columns] at an input.

        Only `+ - * //` are used, so sizes may be symbolic integers of TensorRT.
        """
        # The second convolution of a pair is 1x1 and leaves rows and columns as they are.
        a = self.convs[0].attributes
        rows, columns = (
            window_positions(sizes[2 + axis], a.reach(axis), a.strides[axis]) for axis in (0, 1)
        )
        return (sizes[0], self.outputs, rows, columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProblem(Problem):
    """One convolution with bias, residual and activation."""

    op: ClassVar[str] = "CBR"

    attributes: CbrAttributes

    def __post_init__(self) -> None:
        """Refuses what no CBR can be.

        Raises:
            ValueError: what does not fit.
        """
        if self.dtype not in ELEMENT_BYTES:
            raise ValueError(f"dtype {self.dtype!r} is not one of {', '.join(ELEMENT_BYTES)}")
        if len({sizes[1] for sizes in (self.x.min, self.x.opt, self.x.max)}) != 1:
            raise ValueError(f"{self.x}: the channels must be fixed")
        if self.channels % self.attributes.group:
            raise ValueError(f"group {self.attributes.group} does not divide {self.channels}")
        for sizes in (self.x.min, self.x.opt, self.x.max):
            cbr.output_shape(sizes, self.weight_shape, self.attributes)

    @property
    def convs(self) -> tuple[KernelProblem, ...]:
        """This one alone."""
        return (self,)

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
        """Kernel height times kernel width."""
        return self.attributes.kernel_shape[0] * self.attributes.kernel_shape[1]

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        """[outputs, channels / group, kernel height, kernel width]."""
        return (self.outputs, self.group_channels, *self.attributes.kernel_shape)

    def reference(
        self, x: Array, weights: Sequence[Array], biases: Sequence[Array], residual: Array | None
    ) -> Array:
        """The output [N, outputs, rows, columns] in float64; one weight and one bias a conv."""
        return cbr.reference(x, weights[0], biases[0], residual, self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairProblem(Problem):
    """A depthwise convolution and the pointwise one that alone reads it, as one kernel."""

    op: ClassVar[str] = "CBRPair"

    attributes: CbrPairAttributes

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
    def depthwise(self) -> KernelProblem:
        """The first convolution alone."""
        return KernelProblem(
            attributes=self.attributes.depthwise,
            outputs=self.channels,
            dtype=self.dtype,
            x=self.x,
        )

    @property
    def pointwise(self) -> KernelProblem:
        """The second convolution alone."""
        first = self.depthwise
        least, usual, most = map(first.output, (self.x.min, self.x.opt, self.x.max))
        return KernelProblem(
            attributes=self.attributes.pointwise,
            outputs=self.outputs,
            dtype=self.dtype,
            x=ShapeRange(name="x", min=least, opt=usual, max=most),
        )

    @property
    def convs(self) -> tuple[KernelProblem, ...]:
        """Both."""
        return (self.depthwise, self.pointwise)

    def reference(
        self, x: Array, weights: Sequence[Array], biases: Sequence[Array], residual: Array | None
    ) -> Array:
        """The output in float64; what lies between the convolutions is not rounded."""
        both = (weights[0], weights[1])
        return cbr_pair.reference(x, both, (biases[0], biases[1]), residual, self.attributes)


AnyProblem = KernelProblem | PairProblem


def check_range(problem: AnyProblem, least: Sequence[int], most: Sequence[int]) -> None:
    """Refuses sizes [batch, channels, height, width] outside the range of a problem's kernels.

    Raises:
        ValueError: `least` or `most` is outside the range.
    """
    x = problem.x
    inside = len(least) == len(most) == len(x.min) and all(
        low <= a and b <= high for low, a, b, high in zip(x.min, least, most, x.max, strict=True)
    )
    if not inside:
        raise ValueError(
            f"kernels for inputs {list(x.min)} to {list(x.max)} met {list(least)} to {list(most)}"
        )


def padded(channels: int) -> int:
    """Elements that a pixel takes in HWC8."""
    return -(-channels // 8) * 8
