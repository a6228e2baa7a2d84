"""A tactic's kernel run on the CPU, its numbers compared with the op's reference in float64.

Fresh random inputs each time, padding lanes of the input poisoned with NaN; the emulator adds what
a GPU would hide: races, reads of what nothing wrote, accesses out of bounds. The reference of a
pair does not round what lies between the convolutions; the kernel does, to the element type, as two
kernels would. The tolerances are those of single convolutions all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.emulator.checks import Checks, Finding
from trtplug.emulator.counters import Counters
from trtplug.emulator.memory import POISON
from trtplug.emulator.parse import parse_module
from trtplug.emulator.run import Buffer, launch
from trtplug.kernels.layout import (
    BITS,
    NAN_BITS,
    from_bits,
    from_device,
    padding_lanes,
    to_bits,
    to_device,
)
from trtplug.kernels.problem import padded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trtplug.emulator.ptx import Module
    from trtplug.kernels.family import AnyTactic, Launch, Layout
    from trtplug.kernels.problem import AnyProblem
    from trtplug.tensor import Sizes

    Array = NDArray[Any]


TOLERANCE = {"float": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
"""Largest relative error ||out - reference|| / ||reference||; BF16 has 3 bits less than FP16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensors:
    """Inputs of a kernel, as numbers that the element type holds exactly (the biases: FP32)."""

    x: Array
    weights: tuple[Array, ...]
    """Of each convolution [outputs, channels / group, kH, kW]."""
    biases: tuple[Array, ...]
    """Of each convolution [outputs]."""
    residual: Array | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The verdict on one kernel at one size."""

    blocks: int
    """Blocks that were run."""
    grid_blocks: int
    """Blocks of the whole grid."""
    relative_error: float
    """Over the output elements that were written."""
    tolerance: float
    problems: tuple[str, ...]
    """What is wrong with the output, in words."""
    findings: tuple[Finding, ...]
    counters: Counters
    output: Array
    """[N, outputs, rows, columns] float32; NaN where no block that was run writes."""

    @property
    def passed(self) -> bool:
        """Numbers within the tolerance, and nothing found."""
        return not self.problems and not self.findings


def random_tensors(problem: AnyProblem, sizes: Sizes, rng: np.random.Generator) -> Tensors:
    """Normal inputs; weights scaled so that sums are of the order of 1."""
    dtype = problem.dtype
    return Tensors(
        x=draw(sizes, 1.0, dtype, rng),
        weights=tuple(
            draw(c.weight_shape, (c.group_channels * c.taps) ** -0.5, dtype, rng)
            for c in problem.convs
        ),
        biases=tuple(draw((c.outputs,), 0.5, "float", rng) for c in problem.convs),
        residual=draw(problem.output(sizes), 1.0, dtype, rng) if problem.has_residual else None,
    )


def draw(shape: Sequence[int], scale: float, dtype: str, rng: np.random.Generator) -> Array:
    """Normal numbers that the element type holds exactly."""
    values = (rng.standard_normal(tuple(shape)) * scale).astype(np.float32)
    return from_bits(to_bits(values, dtype), dtype)


def run_tactic(
    tactic: AnyTactic,
    problem: AnyProblem,
    ptx: str,
    tensors: Tensors,
    *,
    checks: Checks | None = None,
    blocks: Sequence[int] | None = None,
) -> Checked:
    """Runs a compiled tactic in the emulator.

    Args:
        tactic: what `ptx` was generated for.
        problem: likewise.
        ptx: the kernel.
        tensors: inputs; the size of x must be within the problem's range.
        checks: what the emulator checks; all by default.
        blocks: numbers of the blocks to run; all by default.

    Raises:
        PtxError: an instruction that the emulator does not know.
    """
    sizes = tuple(int(n) for n in tensors.x.shape)
    return run_kernel(
        parse_module(ptx),
        tactic.kernel,
        tactic.launch(problem, sizes),
        input_arrays(tactic, problem, tensors),
        problem.arguments(sizes),
        expected(problem, tensors),
        dtype=problem.dtype,
        layout=tactic.layout,
        checks=checks,
        blocks=blocks,
    )


def expected(problem: AnyProblem, tensors: Tensors) -> Array:
    """The output [N, outputs, rows, columns] in float64."""
    with np.errstate(invalid="ignore"):  # An infinity of the input shows in the output.
        return problem.reference(tensors.x, tensors.weights, tensors.biases, tensors.residual)


def run_kernel(
    module: Module,
    kernel: str,
    launching: Launch,
    inputs: dict[str, Array],
    arguments: Sequence[int],
    wanted: Array,
    *,
    dtype: str,
    layout: Layout,
    checks: Checks | None,
    blocks: Sequence[int] | None,
) -> Checked:
    """Runs any kernel of ours, and compares its output with `wanted` [N, outputs, rows, columns].

    Args:
        module: with the kernel.
        kernel: its name.
        launching: grid and block.
        inputs: name -> flat bits, in order of the kernel's arguments; `arguments` follow them.
        arguments: the int32 ones.
        wanted: the output in float64.
        dtype: of the output, as `layout` is.
        layout: likewise.
        checks: as in `run_tactic`, as `blocks` is.
        blocks: likewise.
    """
    shape = tuple(int(n) for n in wanted.shape)
    y = empty_output(shape, dtype, layout)
    run = launch(
        module,
        kernel,
        launching.grid,
        launching.block,
        launching.shared_bytes,
        [
            *(Buffer(name=n, data=d) for n, d in inputs.items()),
            *arguments,
            Buffer(name="y", data=y, role="output"),
        ],
        checks or Checks(),
        blocks=blocks,
    )
    output = from_device(y, dtype, layout, shape)
    missing = _missing(output, wanted)
    error, problems = relative_error(output, wanted), []
    if blocks is None and missing.any():
        error = float("nan")
        problems.append(f"{int(missing.sum())} of {output.size} outputs are NaN")
    elif missing.all():
        problems.append("no output was written")
    tolerance = TOLERANCE[dtype]
    if not error <= tolerance:
        problems.append(f"relative error {error:.2e} is above {tolerance:g}")
    if layout == "HWC8" and not _padding_is_zero(y, shape, dtype, blocks is None):
        problems.append("a padding lane of the output is not zero")
    grid_blocks = launching.grid[0] * launching.grid[1] * launching.grid[2]
    return Checked(
        blocks=grid_blocks if blocks is None else len(set(blocks)),
        grid_blocks=grid_blocks,
        relative_error=error,
        tolerance=tolerance,
        problems=tuple(problems),
        findings=run.findings,
        counters=run.counters,
        output=output,
    )


ARGUMENTS = {
    "CBR": (("weights", "bias"),),
    "CBRPair": (("dw_weight", "dw_bias"), ("weights", "bias")),
}
"""Op -> names of what each convolution reads, as `trtplug.ops.plugin_layer.LAYER_INPUTS`."""


def input_arrays(tactic: AnyTactic, problem: AnyProblem, tensors: Tensors) -> dict[str, Array]:
    """What a kernel reads, as flat bits, in order of its arguments."""
    dtype = problem.dtype
    arrays = {"x": to_device(tensors.x, dtype, tactic.x_layout)}
    for conv, (weight, bias) in enumerate(ARGUMENTS[problem.op]):
        packed = tactic.pack_weights(problem, to_bits(tensors.weights[conv], dtype), conv)
        arrays[weight] = np.ascontiguousarray(packed)
        arrays[bias] = tactic.pack_bias(problem, tensors.biases[conv], conv)
    if tensors.residual is not None:
        arrays["residual"] = to_device(tensors.residual, dtype, tactic.layout)
    return arrays


def empty_output(shape: Sizes, dtype: str, layout: Layout) -> Array:
    """The flat bits of an output nobody wrote: NaN throughout."""
    batch, channels, height, width = shape
    lanes = padded(channels) if layout == "HWC8" else channels
    y: Array = np.full(batch * lanes * height * width, NAN_BITS[dtype], BITS[dtype])
    return y


def relative_error(output: Array, wanted: Array) -> float:
    """||output - wanted|| / ||wanted|| over what was written; NaN where nothing was."""
    there = ~_missing(output, wanted)
    if not there.any():
        return float("nan")
    norm = float(np.linalg.norm(wanted[there].astype(np.float64)))
    return float(np.linalg.norm(output[there].astype(np.float64) - wanted[there])) / (norm or 1.0)


def _missing(output: Array, wanted: Array) -> Array:
    found: Array = np.isnan(output) & ~np.isnan(wanted)
    return found


def _padding_is_zero(y: Array, shape: Sizes, dtype: str, complete: bool) -> bool:
    lanes = padding_lanes(y, shape)
    if complete:
        return not lanes.any()
    # Lanes of pixels that no block of the sample writes hold what they held before, or, where the
    # emulator looks after memory, its own poison.
    poison = int.from_bytes(bytes([POISON]) * y.itemsize, "little")
    return bool(np.isin(lanes, (0, NAN_BITS[dtype], poison)).all())
