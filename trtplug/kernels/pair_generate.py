"""The CUDA source of a pair tactic for a problem.

A kernel's arguments are pointers to x, packed weights and bias of the depthwise convolution, then
those of the pointwise one and, where there is one, the residual; then an int32 for each axis that
is not fixed (batch, height, width); then y.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.kernels.generate import ELEMENTS, extents, limits_to_try, site_struct, tile_type
from trtplug.kernels.source import MIN_BLOCKS, KernelSource, assemble
from trtplug.kernels.tactic import FIRST_ASYNC_SM
from trtplug.kernels.usage import LIMITS

if TYPE_CHECKING:
    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.kernels.source import Headers
    from trtplug.target import Sm


PAIR_KERNEL = "trtplug_cbr_pair"
"""Name of every kernel of a pair."""


def generate_pair(
    tactic: PairTactic, problem: PairProblem, sm: Sm, headers: Headers | None = None
) -> KernelSource:
    """The source of one kernel; `tactic` must be legal for the problem on the SM.

    `headers` are those of `plugins/`, read once for many kernels.
    """
    text = "\n".join(
        (
            f"// {tactic.name}",
            '#include "cbr_pair/pair.cuh"',
            "",
            site_struct(problem.depthwise, "First", problem.dtype),
            "",
            site_struct(problem.pointwise, "Second", problem.dtype),
            "",
            _kernel(tactic, problem, sm),
            "",
        )
    )
    return assemble(PAIR_KERNEL, text, headers, pair_blocks_to_try(tactic, problem, sm))


def _kernel(tactic: PairTactic, problem: PairProblem, sm: Sm) -> str:
    element = ELEMENTS[problem.dtype]
    residual = f"const {element}* residual, " if problem.has_residual else ""
    numbers = "".join(f"int {name}, " for name in problem.dynamic)
    body = "" if problem.has_residual else f"  const {element}* residual = nullptr;\n"
    way = "Asynchronous" if sm.number >= FIRST_ASYNC_SM else "Staged"
    types = f"First, Second, {tile_type(tactic.tile)}, trtplug::{way}"
    return (
        f'extern "C" __global__ void __launch_bounds__({tactic.tile.threads}, {MIN_BLOCKS}) '
        f"{PAIR_KERNEL}(\n"
        f"    const {element}* x, const {element}* between, const float* between_bias,\n"
        f"    const {element}* weights, const float* bias, {residual}{numbers}{element}* y) {{\n"
        f"{body}"
        f"  const trtplug::Extents at = trtplug::extents_of<First>({extents(problem.depthwise)});\n"
        f"  trtplug::depthwise_pointwise<{types}>(\n"
        "      x, between, between_bias, weights, bias, residual, y, at);\n"
        "}"
    )


def pair_blocks_to_try(tactic: PairTactic, problem: PairProblem, sm: Sm) -> tuple[int, ...]:
    """As `blocks_to_try` has it for single convolutions."""
    fit = LIMITS[sm.number].shared_bytes // tactic.tile.shared_bytes
    # Masks of taps beyond 32 bits take two registers a row: with as many blocks they would spill.
    blocks = tactic.blocks - int(problem.depthwise.taps > 32)
    return limits_to_try(min(blocks, fit), tactic.tile.threads, sm)
