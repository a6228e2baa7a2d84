"""Predicted time of a pair on a GPU: the model of `trtplug.kernels.estimate`, with one term more.

    depthwise   multiply-adds of the depthwise part, `INSTRUCTIONS` for each, over the FP32 peak:
                what lies between the convolutions is made anew by every column of blocks

Memory leaves out what lies between the convolutions: it never gets there. Nothing is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.kernels.estimate import (
    DEFAULT_CLOCK_MHZ,
    L2_SPEEDUP,
    LATENCY_CLOCKS,
    PEAK_SHARE,
    SHARED_BYTES_PER_CLOCK,
    START_US,
    BoundBy,
    Prediction,
    move_us,
    tensor_share,
)
from trtplug.kernels.launch import divide_up
from trtplug.kernels.pair_launch import launch_pair
from trtplug.kernels.pair_work import made_between, pair_work_of
from trtplug.kernels.problem import ELEMENT_BYTES, padded
from trtplug.kernels.usage import LIMITS, Usage, blocks_per_sm

if TYPE_CHECKING:
    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.profile import GpuProfile
    from trtplug.tensor import Sizes


INSTRUCTIONS = 3.5
"""For a multiply-add of the depthwise part: itself, the conversion of its input, and its share of
loads, addresses and conversions of weights; counted in pair_128x64x32 on sm_80."""


def predict_pair(
    tactic: PairTactic, problem: PairProblem, profile: GpuProfile, usage: Usage, sizes: Sizes
) -> Prediction | None:
    """The prediction at an input; None where figures are missing. See `predict`."""
    dense = profile.dense_peak
    peak = dense.fp16_flops_per_s if problem.dtype == "float16" else dense.bf16_flops_per_s
    scalar, bandwidth = dense.fp32_flops_per_s, profile.memory_bandwidth_bytes_per_s
    sms, limits = profile.sm_count, LIMITS.get(profile.sm.number)
    if peak is None or scalar is None or bandwidth is None or sms is None or limits is None:
        return None
    clock_hz = (profile.boost_clock_mhz or DEFAULT_CLOCK_MHZ) * 1e6
    grid = launch_pair(tactic, problem, sizes).grid
    blocks = grid[0] * grid[1]
    at_once = max(1, blocks_per_sm(usage, tactic.tile.threads, limits)) * sms
    waves, per_sm = divide_up(blocks, at_once), divide_up(blocks, sms)
    work, made = pair_work_of(tactic, problem), made_between(tactic, problem)
    moved = work.shared_bytes + work.l1_bytes
    # A row of the kernel waits for its inputs; the product waits for what is made of them.
    chain = work.steps * (1 + problem.attributes.depthwise.kernel_shape[0])
    terms: dict[BoundBy, float] = {
        "tensor": per_sm * sms * work.multiply_adds * 2e6 / (peak * tensor_share(profile)),
        "depthwise": per_sm * sms * made * INSTRUCTIONS * 2e6 / (scalar * PEAK_SHARE),
        "shared": per_sm * moved / SHARED_BYTES_PER_CLOCK / clock_hz * 1e6,
        "l2": blocks * work.l2_bytes / (bandwidth * L2_SPEEDUP) * 1e6,
        "memory": move_us(_moved_bytes(problem, sizes), bandwidth, profile.l2_bytes),
        "latency": waves * chain * LATENCY_CLOCKS / clock_hz * 1e6,
    }
    bound = max(terms, key=lambda name: terms[name])
    return Prediction(
        predicted_us=START_US + terms[bound],
        bound_by=bound,
        waves=int(waves),
        terms=tuple(terms.items()),
    )


def _moved_bytes(problem: PairProblem, sizes: Sizes) -> int:
    y = problem.output(sizes)
    tensors = [sizes, y, *([y] if problem.has_residual else [])]
    elements = sum(n * padded(c) * h * w for n, c, h, w in tensors)
    elements += problem.channels * (problem.depthwise.taps + problem.outputs)
    return elements * ELEMENT_BYTES[problem.dtype]
