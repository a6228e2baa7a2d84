"""A pair's kernel run on the CPU, its numbers held against the op's reference in float64.

The reference does not round what lies between the convolutions; the kernel does, to the element
type, as two kernels would. The tolerances are those of single convolutions all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.emulator.parse import parse_module
from trtplug.kernels.layout import to_bits, to_device
from trtplug.kernels.pair_generate import PAIR_KERNEL
from trtplug.kernels.pair_launch import launch_pair
from trtplug.kernels.pair_packing import pack_pair, pack_pair_biases
from trtplug.kernels.run_check import Checked, draw, run_kernel
from trtplug.ops.cbr_pair import reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from trtplug.emulator.checks import Checks
    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.tensor import Sizes


if TYPE_CHECKING:
    Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTensors:
    """Inputs of a pair, as numbers that the element type holds exactly (the biases: FP32)."""

    x: Array
    weights: tuple[Array, Array]
    """Of the depthwise convolution, and of the pointwise one."""
    biases: tuple[Array, Array]
    residual: Array | None


def random_pair_tensors(
    problem: PairProblem, sizes: Sizes, rng: np.random.Generator
) -> PairTensors:
    """Normal inputs; weights scaled so that sums are of the order of 1."""
    both = (problem.depthwise, problem.pointwise)
    terms = (problem.depthwise.taps, problem.channels)
    first, second = (
        draw(p.weight_shape, n**-0.5, problem.dtype, rng) for p, n in zip(both, terms, strict=True)
    )
    output = problem.output(sizes)
    return PairTensors(
        x=draw(sizes, 1.0, problem.dtype, rng),
        weights=(first, second),
        biases=(
            draw((problem.channels,), 0.5, "float", rng),
            draw((problem.outputs,), 0.5, "float", rng),
        ),
        residual=draw(output, 1.0, problem.dtype, rng) if problem.has_residual else None,
    )


def run_pair(
    tactic: PairTactic,
    problem: PairProblem,
    ptx: str,
    tensors: PairTensors,
    *,
    checks: Checks | None = None,
    blocks: Sequence[int] | None = None,
) -> Checked:
    """Runs a compiled pair in the emulator; arguments as `run_tactic` has them.

    Raises:
        PtxError: an instruction that the emulator does not know.
    """
    sizes = tuple(int(n) for n in tensors.x.shape)
    return run_kernel(
        parse_module(ptx),
        PAIR_KERNEL,
        launch_pair(tactic, problem, sizes),
        pair_arrays(tactic, problem, tensors),
        problem.arguments(sizes),
        expected_of_pair(problem, tensors),
        sizes=sizes,
        dtype=problem.dtype,
        layout=tactic.layout,
        checks=checks,
        blocks=blocks,
    )


def expected_of_pair(problem: PairProblem, tensors: PairTensors) -> Array:
    """The output [N, outputs, rows, columns] in float64."""
    with np.errstate(invalid="ignore"):  # Infinities that came in are told by what comes out.
        return reference(
            tensors.x, tensors.weights, tensors.biases, tensors.residual, problem.attributes
        )


def pair_arrays(tactic: PairTactic, problem: PairProblem, tensors: PairTensors) -> dict[str, Array]:
    """What a kernel reads, as flat bits, in order of its arguments."""
    dtype = problem.dtype
    bits = (to_bits(tensors.weights[0], dtype), to_bits(tensors.weights[1], dtype))
    between, weights = pack_pair(tactic, problem, bits)
    between_bias, bias = pack_pair_biases(tactic, problem, tensors.biases)
    arrays = {
        "x": to_device(tensors.x, dtype, "HWC8"),
        "between": np.ascontiguousarray(between),
        "between_bias": between_bias,
        "weights": np.ascontiguousarray(weights),
        "bias": bias,
    }
    if tensors.residual is not None:
        arrays["residual"] = to_device(tensors.residual, dtype, "HWC8")
    return arrays
