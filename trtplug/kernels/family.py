"""A kernel family: one subclass of `Tactic` in one module, and the CUDA file that it includes.

A tactic is one kernel's shape before it meets a convolution. Its methods say all that the rest of
the package asks of a family: where it is legal, its source, its launch, how its weights and biases
are packed, and the work of a block for predictions. `trtplug.kernels.catalog` lists the families.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from trtplug.kernels.problem import AnyProblem, KernelProblem, padded
from trtplug.kernels.sm import SMS, STATIC_SHARED_BYTES, WARP
from trtplug.kernels.source import ELEMENTS, MIN_BLOCKS, KernelSource, assemble, site_struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.kernels.problem import Array
    from trtplug.kernels.source import Headers
    from trtplug.target import Sm


Layout = Literal["LINEAR", "HWC8"]
"""Formats of TensorRT: LINEAR is [N, C, H, W], HWC8 is [N, H, W, C filled up to 8]."""

DEFAULT_SHARED_BYTES = 47 * 1024
"""What TensorRT leaves to a block at its strictest: 48 KiB less the 1 KiB that the system takes."""

LARGEST_INDEX = 2**31 - 2**10
"""Indices of pixels and threads are int32, and the last block may reach beyond the last one."""

MOST_BLOCKS_DOWN = 65535
"""CUDA's limit on the second and third extent of a grid."""

SECTOR_BYTES = 32
"""What global memory moves at once."""

_SCALAR_BLOCKS = 4
"""Without this figure ptxas has been seen to spill at 40 registers, for blocks beyond need."""


class Exclusion(str, Enum):
    """Why a tactic is not legal for a problem on an SM."""

    sentence: str
    """One sentence for people."""

    def __new__(cls, code: str, sentence: str) -> Exclusion:
        """Members are their code; the sentence is an attribute."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        return member

    SM = ("sm", "No kernel is made for this SM.")
    DTYPE = ("dtype", "The tactic does not compute in this type.")
    SM_DTYPE = ("sm_dtype", "The SM has no arithmetic for this type; BF16 begins with sm_80.")
    SHARED_MEMORY = ("shared_memory", "A block takes more shared memory than it may.")
    STAGES = ("stages", "Through registers, on sm_75, tiles have two stages in every tactic: "
              "the first tactic with the tile stands for all.")  # fmt: skip
    POINTWISE = ("pointwise", "A 1x1 kernel without padding: the pointwise tactics are the same "
                 "without tests of the borders.")  # fmt: skip
    NOT_POINTWISE = ("not_pointwise", "The kernel is not 1x1, or the input is padded.")
    NOT_DEPTHWISE = ("not_depthwise", "Not every channel has one filter of its own.")
    DEPTHWISE = (
        "depthwise",
        "Every channel has a filter of its own: no sum over channels to tile.",
    )
    GROUP_ALIGNMENT = ("group_alignment", "A group's channels, in or out, are no multiple of 8.")
    GROUPED = ("grouped", "The tactic takes one group only.")
    KERNEL_SIZE = ("kernel_size", "The kernel has more taps, in all or in a row, than the tactic's "
                   "masks hold.")  # fmt: skip
    CHANNELS = ("channels", "Too many input channels: the tactic is for 1 to 4.")
    DEPTH = ("depth", "The sum has too many terms to be written out.")
    OFFSETS = ("offsets", "Offsets within one image, or indices over all, would leave 32 bits.")
    GRID = ("grid", "The grid would have more blocks along an axis than CUDA takes.")


@dataclass(frozen=True, slots=True)
class TensorFormat:
    """One input or output of a plugin's layer."""

    dtype: str
    """`float`, `float16` or `bfloat16`."""
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Grid and block; a size may be a symbolic integer."""

    grid: tuple[Any, Any, Any]
    block: tuple[int, int, int]
    shared_bytes: int = 0
    """Dynamic shared memory: our kernels use static shared memory only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one block does; bytes of a block inside the image, as the emulator counts them."""

    multiply_adds: int
    shared_bytes: int
    """Through shared memory."""
    l1_bytes: int
    """Loaded through the L1 cache, in whole sectors."""
    l2_bytes: int
    """Copied past the L1 cache."""
    steps: int
    """In depth, one after the other."""
    fp32_multiply_adds: float = 0.0
    """Beside `multiply_adds` on Tensor Cores, those that CUDA cores do, in their own time."""


P = TypeVar("P", bound=AnyProblem)
"""What a family takes: `KernelProblem` or `PairProblem`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tactic(ABC, Generic[P]):
    """One way to compute a problem; a subclass is a family, its values are the family's tactics."""

    op: ClassVar[str] = "CBR"
    """The op that it computes, as `KernelProblem.op`."""
    kernel: ClassVar[str] = "trtplug_cbr"
    """Name of the kernel in PTX: an engine holds one a plugin, so all of an op have one name."""
    structs: ClassVar[tuple[str, ...]] = ("Site",)
    """Names in CUDA of the structs with what is fixed, one for each convolution."""
    includes: ClassVar[tuple[str, ...]]
    """Files below `plugins/` that the source includes, such as `cbr/direct.cuh`."""
    tensor_cores: ClassVar[bool] = False
    """Whether `Work.multiply_adds` are done by Tensor Cores."""
    rank: ClassVar[int] = 1
    """Order where nothing is known of the GPU: 0 for a special case, 2 for what takes anything."""

    name: str
    number: int
    """What TensorRT knows it by; positive, and never given to another."""
    use: str
    """One sentence: when it should win."""
    layout: Layout = "HWC8"
    """Of input, residual and output."""

    # What a family says.

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 128

    def exclusions(self, problem: P) -> Iterator[Exclusion]:
        """Reasons of the family's own against a problem, beside those of `exclusion`."""
        return iter(())

    @abstractmethod
    def body(self, problem: P, sm: Sm) -> str:
        """The statement in CUDA that runs the kernel.

        Its names: `Site`, `x`, `weights`, `bias`, `residual`, `y`, and `at` with the extents.
        """

    @abstractmethod
    def grid(self, problem: P, sizes: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Blocks at an input [batch, channels, height, width]: ints or symbols, by `+ - * //`."""

    @abstractmethod
    def packing(self, problem: P) -> str:
        """Name of how weights and biases are packed: equal names, equal bytes."""

    @abstractmethod
    def pack_weights(self, problem: P, weights: Array, conv: int = 0) -> Array:
        """Weights [outputs, channels / group, kH, kW] as the kernel reads them.

        Any type of element goes; what is filled up is zero. `conv` is an index into `convs`.
        """

    @abstractmethod
    def pack_bias(self, problem: P, bias: Array, conv: int = 0) -> Array:
        """The bias [outputs] in FP32, filled up with zeros to what a kernel reads of it."""

    @abstractmethod
    def work(self, problem: P) -> Work:
        """The work of a block; the tactic must be legal for the problem."""

    def min_blocks(self, problem: P, sm: Sm) -> int:
        """Blocks that an SM is to hold: the compiler's limit on registers follows from it."""
        return _SCALAR_BLOCKS

    def shared_bytes(self, sm: Sm) -> int:
        """Static shared memory of a block."""
        return 0

    def exists_on(self, sm: Sm) -> bool:
        """Whether a kernel of its own is made for the SM."""
        return True

    @property
    def x_layout(self) -> Layout:
        """Of the input, where it is another than `layout`."""
        return self.layout

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Types that it computes in; BF16 from sm_80 on."""
        return ("float",) if self.layout == "LINEAR" else ("float16", "bfloat16")

    def parameters(self, element: str) -> str:
        """The kernel's parameters in CUDA up to the residual."""
        return f"const Site::Input* x, const {element}* weights, const float* bias, "

    # What follows from it.

    def exclusion(
        self, problem: P, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
    ) -> Exclusion | None:
        """The first reason against a problem on an SM; None where the tactic is legal.

        A legal tactic computes the right numbers; whether it is fast is another matter.
        `shared_bytes` is what a block may take of shared memory.
        """
        return next(self._reasons(problem, sm, shared_bytes), None)

    def _reasons(self, problem: P, sm: Sm, shared_bytes: int) -> Iterator[Exclusion]:
        if sm.number not in SMS:
            yield Exclusion.SM
            return
        if problem.dtype not in self.dtypes:
            yield Exclusion.DTYPE
        if problem.dtype == "bfloat16" and not SMS[sm.number].is_async:
            yield Exclusion.SM_DTYPE
        yield from self.exclusions(problem)
        if not self.exists_on(sm):
            yield Exclusion.STAGES
        if self.shared_bytes(sm) > min(shared_bytes, STATIC_SHARED_BYTES):
            yield Exclusion.SHARED_MEMORY
        yield from self._size_reasons(problem)

    def _size_reasons(self, problem: P) -> Iterator[Exclusion]:
        largest = problem.x.max
        batch, _, rows, columns = problem.output(largest)
        across, *down = self.grid(problem, largest)
        # The window may begin before the image and end after it.
        reach = sum(problem.convs[0].attributes.pads)
        image = (largest[2] + reach) * (largest[3] + reach) * padded(problem.channels)
        if max(batch * rows * columns, across * self.threads, image) > LARGEST_INDEX:
            yield Exclusion.OFFSETS
        if max(down) > MOST_BLOCKS_DOWN:
            yield Exclusion.GRID

    def launch(self, problem: P, sizes: Sequence[Any]) -> Launch:
        """Launch at an input [batch, channels, height, width].

        Raises:
            TypeError: the problem is of the other op.
        """
        self._check(problem)
        return Launch(grid=self.grid(problem, sizes), block=(self.threads, 1, 1))

    def formats(self, problem: P) -> tuple[TensorFormat, ...]:
        """The inputs in the order of `trtplug.ops.plugin_layer.LAYER_INPUTS`, then y."""
        own = TensorFormat(problem.dtype, self.layout)
        packed = (TensorFormat(problem.dtype, "LINEAR"), TensorFormat("float", "LINEAR"))
        x = TensorFormat(problem.dtype, self.x_layout)
        residual = (own,) if problem.has_residual else ()
        return (x, *packed * len(problem.convs), *residual, own)

    def blocks_to_try(self, problem: P, sm: Sm) -> tuple[int, ...]:
        """`min_blocks`, and other numbers in case the compiler spills registers at that one.

        Higher ones come first, as they leave room for as many blocks.
        """
        wanted = self.min_blocks(problem, sm)
        most = SMS[sm.number].threads // self.threads
        tries = (wanted, wanted + 1, wanted + 2, wanted + 3, wanted - 1, wanted - 2)
        return tuple(n for n in tries if 1 <= n <= most)

    def generate(self, problem: P, sm: Sm, headers: Headers | None = None) -> KernelSource:
        """The CUDA source: constants, one kernel, and the files that it includes.

        A kernel's arguments are pointers to x, to packed weights and bias of each convolution and,
        where there is one, to the residual; an int32 for each axis that is not fixed; then y.

        The tactic must be legal for the problem on the SM. `headers` are those of `plugins/`, read
        once for many kernels.

        Raises:
            TypeError: the problem is of the other op.
        """
        self._check(problem)
        structs = zip(self.structs, problem.convs, strict=True)
        text = "\n".join(
            (
                f"// {self.name}",
                *(f'#include "{name}"' for name in self.includes),
                "",
                *(f"{site_struct(conv, name)}\n" for name, conv in structs),
                self._kernel(problem, sm),
                "",
            )
        )
        return assemble(self.kernel, text, headers, self.blocks_to_try(problem, sm))

    def _kernel(self, problem: P, sm: Sm) -> str:
        element = ELEMENTS[problem.dtype]
        residual = f"const {element}* residual, " if problem.has_residual else ""
        numbers = "".join(f"int {name}, " for name in problem.dynamic)
        none = "" if problem.has_residual else f"  const {element}* residual = nullptr;\n"
        extents = ", ".join(problem.convs[0].extents)
        return (
            f'extern "C" __global__ void __launch_bounds__({self.threads}, {MIN_BLOCKS}) '
            f"{self.kernel}(\n"
            f"    {self.parameters(element)}{residual}{numbers}{element}* y) {{\n"
            f"{none}"
            f"  const trtplug::Extents at = "
            f"trtplug::extents_of<{self.structs[0]}>({extents});\n"
            f"  {self.body(problem, sm)}\n"
            "}"
        )

    def _check(self, problem: P) -> None:
        if problem.op != self.op:
            raise TypeError(f"{self.name} is no tactic for {problem.op}")


AnyTactic = Tactic[Any]


def is_depthwise(problem: KernelProblem) -> bool:
    """One filter for each channel."""
    return problem.attributes.group == problem.channels == problem.outputs


def divide_up(value: Any, by: int) -> Any:  # noqa: ANN401 - an int, or a symbolic integer
    """The quotient, rounded up."""
    return (value + (by - 1)) // by


def fill(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with zeros after it on each axis, up to `shape`."""
    filled = np.zeros(shape, array.dtype)
    filled[tuple(slice(n) for n in array.shape)] = array
    return filled


def spread_sectors(step_bytes: int, size: int) -> int:
    """Sectors of a warp's load of elements of `size` bytes that lie `step_bytes` apart."""
    return min(WARP, -(-((WARP - 1) * step_bytes + size) // SECTOR_BYTES))
