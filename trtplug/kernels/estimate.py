"""Predicted time of a tactic on a GPU, by a stated model; nothing here is measured.

A kernel runs in waves: as many blocks as fit the GPU at a time. For each wave four terms stand
against each other, and the longest counts; the waves, and a fixed start, are added up.

    tensor   multiply-adds of the wave's tiles over the Tensor Cores' (or the FP32) dense peak
    shared   bytes that a block moves through shared memory and the L1 cache, which are one, at 128
             bytes a clock and SM: copies and fragments of tiles, and loads in whole sectors
    l2       bytes that blocks copy past the L1 cache, at the bandwidth of the L2 cache
    memory   bytes of all inputs, weights and the output, each once, at the bandwidth of DRAM; at
             that of L2 where all of it fits into the L2 cache

Bytes of a block are those that the emulator counts: a test holds the formulas to its counters. And
where a block's own chain of steps is longer than its share of a wave, that chain is the time:
`LATENCY_CLOCKS` for each step in depth. So small grids with deep sums come out slow, as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtplug.kernels.generate import threads_of
from trtplug.kernels.launch import divide_up, launch_of
from trtplug.kernels.problem import ELEMENT_BYTES, Problem, padded
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tactic
from trtplug.kernels.usage import LIMITS, Usage, blocks_per_sm
from trtplug.kernels.work import work_of

if TYPE_CHECKING:
    from trtplug.profile import GpuProfile
    from trtplug.tensor import Sizes


BoundBy = Literal["tensor", "shared", "l2", "memory", "latency", "depthwise"]

START_US = 2.0
"""From the end of one kernel of a CUDA graph to the work of the next."""
L2_SPEEDUP = 3.0
"""L2 over DRAM bandwidth where a layer's tensors stay in the cache: of the order of what vendors'
microbenchmarks give (2 to 5); a guess, to be replaced by measurements."""
L2_SHARE = 0.7
"""Share of the L2 cache that one layer may take before it spills over."""
SHARED_BYTES_PER_CLOCK = 128
"""Of one SM."""
LATENCY_CLOCKS = 300
"""A step of a block that nothing hides: fragments, products, barrier."""
PEAK_SHARE = 0.8
"""What kernels reach of a dense peak at best."""
HOPPER_PEAK_SHARE = 0.62
"""The same on sm_90, whose peak is that of warp-group products; ours are those of a warp."""
DEFAULT_CLOCK_MHZ = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A predicted time and the terms that it came from, in microseconds."""

    predicted_us: float
    bound_by: BoundBy
    waves: int
    terms: tuple[tuple[str, float], ...]


def predict(
    tactic: Tactic, problem: Problem, profile: GpuProfile, usage: Usage, sizes: Sizes
) -> Prediction | None:
    """The prediction at an input [batch, channels, height, width]; None where figures are missing.

    Args:
        tactic: what runs.
        problem: what it computes.
        profile: the GPU.
        usage: resources of the compiled kernel.
        sizes: of the input.
    """
    peak = _peak(tactic, problem, profile)
    bandwidth, sms = profile.memory_bandwidth_bytes_per_s, profile.sm_count
    limits = LIMITS.get(profile.sm.number)
    if peak is None or bandwidth is None or sms is None or limits is None:
        return None
    clock_hz = (profile.boost_clock_mhz or DEFAULT_CLOCK_MHZ) * 1e6
    grid = launch_of(tactic, problem, sizes).grid
    blocks = grid[0] * grid[1] * grid[2]
    at_once = max(1, blocks_per_sm(usage, threads_of(tactic), limits)) * sms
    waves = divide_up(blocks, at_once)
    work = work_of(tactic, problem)
    moved = work.shared_bytes + work.l1_bytes
    # The blocks of the fullest SM, wave after wave: what is left over in the last wave costs a
    # whole block's time on it.
    per_sm = divide_up(blocks, sms)
    terms: dict[BoundBy, float] = {
        "tensor": per_sm * sms * work.multiply_adds * 2e6 / (peak * _peak_share(tactic, profile)),
        "shared": per_sm * moved / SHARED_BYTES_PER_CLOCK / clock_hz * 1e6,
        "l2": blocks * work.l2_bytes / (bandwidth * L2_SPEEDUP) * 1e6,
        "memory": _memory_us(problem, sizes, bandwidth, profile.l2_bytes),
        "latency": waves * work.steps * LATENCY_CLOCKS / clock_hz * 1e6,
    }
    bound = max(terms, key=lambda name: terms[name])
    return Prediction(
        predicted_us=START_US + terms[bound],
        bound_by=bound,
        waves=int(waves),
        terms=tuple(terms.items()),
    )


def _peak(tactic: Tactic, problem: Problem, profile: GpuProfile) -> float | None:
    """Dense peak of the arithmetic that a tactic uses, in operations a second."""
    peak = profile.dense_peak
    if isinstance(tactic, (Depthwise, Direct)):
        return peak.fp32_flops_per_s
    return peak.fp16_flops_per_s if problem.dtype == "float16" else peak.bf16_flops_per_s


def _peak_share(tactic: Tactic, profile: GpuProfile) -> float:
    on_tensor_cores = isinstance(tactic, (Gemm, Stem))
    return tensor_share(profile) if on_tensor_cores else PEAK_SHARE


def tensor_share(profile: GpuProfile) -> float:
    """Share of the Tensor Cores' peak that kernels reach."""
    return HOPPER_PEAK_SHARE if profile.sm.number == 90 else PEAK_SHARE


def _memory_us(problem: Problem, sizes: Sizes, bandwidth: int, l2_bytes: int | None) -> float:
    return move_us(_moved_bytes(problem, sizes), bandwidth, l2_bytes)


def move_us(moved_bytes: int, bandwidth: int, l2_bytes: int | None) -> float:
    """Time to move tensors once, through the L2 cache where all fit."""
    in_cache = l2_bytes is not None and moved_bytes < L2_SHARE * l2_bytes
    return moved_bytes / (bandwidth * (L2_SPEEDUP if in_cache else 1.0)) * 1e6


def _moved_bytes(problem: Problem, sizes: Sizes) -> int:
    size = ELEMENT_BYTES[problem.dtype]
    y = problem.output(sizes)
    tensors = [sizes, y, *([y] if problem.has_residual else [])]
    # HWC8 moves its padding lanes as well.
    fill = padded if size == 2 else int
    moved = sum(n * fill(c) * h * w for n, c, h, w in tensors) * size
    outputs, inner, rows, columns = problem.weight_shape
    return moved + outputs * inner * rows * columns * size
