"""Predicted time of a tactic on a GPU, by a stated model; nothing here is measured.

A kernel runs in waves: as many blocks as fit the GPU at a time. For each wave the longest
of these terms counts; the waves, and a fixed start, are added up.

    tensor     multiply-adds of the wave's tiles over the Tensor Cores' (or the FP32) dense peak
    depthwise  beside those on Tensor Cores, multiply-adds on CUDA cores over the FP32 peak: in a
               pair, what lies between the convolutions is made anew by every column of blocks
    shared     bytes that a block moves through shared memory and the L1 cache, which are one, at
               128 bytes a clock and SM: copies and fragments of tiles, and loads in whole sectors
    l2         bytes that blocks copy past the L1 cache, at the bandwidth of the L2 cache
    memory     bytes of all inputs, weights and the output, each once, at the bandwidth of DRAM; at
               that of L2 where all of it fits into the L2 cache

Bytes of a block are those that the emulator counts: a test holds the formulas to its counters. And
where a block's own chain of steps is longer than its share of a wave, that chain is the time:
`LATENCY_CLOCKS` for each step in depth. So small grids with deep sums come out slow, as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trtplug.kernels.family import divide_up
from trtplug.kernels.problem import ELEMENT_BYTES, padded
from trtplug.kernels.sm import SMS, Usage, blocks_per_sm

if TYPE_CHECKING:
    from trtplug.kernels.family import AnyTactic, Work
    from trtplug.kernels.problem import AnyProblem
    from trtplug.profile import DensePeak, GpuProfile
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
    terms: tuple[tuple[str, float], ...]


def predict(
    tactic: AnyTactic, problem: AnyProblem, profile: GpuProfile, usage: Usage, sizes: Sizes
) -> Prediction | None:
    """The prediction at an input [batch, channels, height, width]; None where figures are missing.

    `usage` has the resources of the compiled kernel.
    """
    work, share = tactic.work(problem), _peak_share(tactic, profile)
    peak, fp32 = _peak(tactic, problem, profile.dense_peak), profile.dense_peak.fp32_flops_per_s
    bandwidth, sms = profile.memory_bandwidth_bytes_per_s, profile.sm_count
    facts = SMS.get(profile.sm.number)
    if peak is None or bandwidth is None or sms is None or facts is None:
        return None
    if work.fp32_multiply_adds and fp32 is None:
        return None
    clock_hz = (profile.boost_clock_mhz or DEFAULT_CLOCK_MHZ) * 1e6
    across, down, deep = tactic.launch(problem, sizes).grid
    blocks = across * down * deep
    at_once = max(1, blocks_per_sm(usage, tactic.threads, facts)) * sms
    waves = divide_up(blocks, at_once)
    moved = work.shared_bytes + work.l1_bytes
    # The blocks of the fullest SM, wave after wave: what is left over in the last wave costs a
    # whole block's time on it.
    per_sm = divide_up(blocks, sms)
    terms: dict[BoundBy, float] = {
        "tensor": per_sm * sms * work.multiply_adds * 2e6 / (peak * share),
        **_depthwise_term(work, per_sm * sms, fp32),
        "shared": per_sm * moved / SHARED_BYTES_PER_CLOCK / clock_hz * 1e6,
        "l2": blocks * work.l2_bytes / (bandwidth * L2_SPEEDUP) * 1e6,
        "memory": _move_us(_moved_bytes(problem, sizes), bandwidth, profile.l2_bytes),
        "latency": waves * work.steps * LATENCY_CLOCKS / clock_hz * 1e6,
    }
    bound = max(terms, key=lambda name: terms[name])
    return Prediction(
        predicted_us=START_US + terms[bound],
        bound_by=bound,
        terms=tuple(terms.items()),
    )


def _peak(tactic: AnyTactic, problem: AnyProblem, peak: DensePeak) -> float | None:
    """Dense peak of the arithmetic that a tactic uses, in operations a second."""
    if not tactic.tensor_cores:
        return peak.fp32_flops_per_s
    return peak.fp16_flops_per_s if problem.dtype == "float16" else peak.bf16_flops_per_s


def _peak_share(tactic: AnyTactic, profile: GpuProfile) -> float:
    hopper = tactic.tensor_cores and profile.sm.number == 90
    return HOPPER_PEAK_SHARE if hopper else PEAK_SHARE


def _depthwise_term(work: Work, blocks: int, fp32: float | None) -> dict[BoundBy, float]:
    if not work.fp32_multiply_adds or fp32 is None:
        return {}
    return {"depthwise": blocks * work.fp32_multiply_adds * 2e6 / (fp32 * PEAK_SHARE)}


def _move_us(moved_bytes: int, bandwidth: int, l2_bytes: int | None) -> float:
    """Time to move tensors once, through the L2 cache where all fit."""
    in_cache = l2_bytes is not None and moved_bytes < L2_SHARE * l2_bytes
    return moved_bytes / (bandwidth * (L2_SPEEDUP if in_cache else 1.0)) * 1e6


def _moved_bytes(problem: AnyProblem, sizes: Sizes) -> int:
    """Bytes of x, y, residual and weights; what lies inside a pair never reaches memory."""
    size = ELEMENT_BYTES[problem.dtype]
    y = problem.output(sizes)
    tensors = [sizes, y, *([y] if problem.has_residual else [])]
    # HWC8 moves its padding lanes as well.
    fill = padded if size == 2 else int
    elements = sum(n * fill(c) * h * w for n, c, h, w in tensors)
    elements += sum(c.outputs * c.group_channels * c.taps for c in problem.convs)
    return elements * size
