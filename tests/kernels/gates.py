"""Static gates of kernels, for the tests and for scripts/bench_kernels.

Shares of CUTLASS were measured on its own implicit GEMM (conv2d fprop, FP16 NHWC, FP32 sums, bias
and ReLU, optimized iterator) for the same tile, in the main loop as counted here. Budgets of
registers are what lets as many blocks fit as the tile is made for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.tactics.pair.problems import pair
from tests.tactics.problems import problem
from trtplug.kernels.compile import Kernel, compile_kernel
from trtplug.kernels.loop import count_loop
from trtplug.kernels.sass import LOCAL, MainLoop
from trtplug.kernels.usage import LIMITS, Usage, blocks_per_sm
from trtplug.tactics.either import ALL_TACTICS, generate_either, list_either, threads_of_either
from trtplug.tactics.pair.catalog import PairTactic
from trtplug.tactics.tactic import Depthwise, Direct, Gemm, Stem
from trtplug.target import Sm

CUTLASS_SHARE = {
    (80, (128, 128, 32)): 0.32,
    (80, (128, 64, 32)): 0.215,
    (80, (64, 64, 64)): 0.19,
    (75, (128, 128, 32)): 0.47,
}
"""(SM, tile) -> share of matrix instructions."""

GOAL_SHARE = {(80, (128, 128, 32)): 0.49}

REGISTERS = {
    (128, 128, 32): 255,
    (128, 64, 32): 168,
    (64, 128, 32): 168,
    (64, 64, 64): 130,
    (64, 64, 32): 130,
    (64, 32, 64): 104,
    (32, 64, 64): 104,
}
"""Tile -> budget from sm_80 on."""

PAIR_REGISTERS = {
    "pair_128x64x32": 128,
    "pair_64x128x32": 168,
    "pair_64x256x32": 128,
    "pair_64x32x64": 128,
    "pair_32x64x64": 128,
}
"""Pair -> budget from sm_80 on, for kernels of 3x3."""


def _sample(tactic):
    """What a tactic is made for, with an activation and a residual."""
    fused = {"activation": "silu", "residual": "after_activation"}
    match tactic:
        case PairTactic():
            return pair((8, 192, 28, 28), 96, residual="after_activation")
        case Gemm(pointwise=True):
            return problem((8, 1024, 14, 14), 256, kernel=(1, 1), pads=(0, 0, 0, 0), **fused)
        case Gemm():
            return problem((8, 256, 14, 14), 256, **fused)
        case Stem():
            return problem((8, 3, 224, 224), 64, kernel=(7, 7), strides=(2, 2), pads=(3,) * 4,
                           activation="relu")  # fmt: skip
        case Depthwise():
            return problem((8, 96, 56, 56), 96, group=96, activation="clip", min=0.0, max=6.0)
        case Direct():
            dtype = "float" if tactic.layout == "LINEAR" else "float16"
            return problem((8, 30, 28, 28), 45, group=3, dtype=dtype, **fused)


SAMPLES = {tactic.name: _sample(tactic) for tactic in ALL_TACTICS}


def sample_of(tactic):
    """The problem that a tactic's figures are of."""
    return SAMPLES[tactic.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Static figures of one tactic on one SM."""

    usage: Usage
    loop: MainLoop | None
    blocks: int


def measure(tactic, number):
    """The figures; None where the tactic does not exist on the SM."""
    given, sm = sample_of(tactic), Sm(number)
    legal = [c.tactic for c in list_either(given, sm, 48 * 1024) if c.exclusion is None]
    if tactic not in legal:
        return None
    kernel = compile_kernel(generate_either(tactic, given, sm), sm, None)
    assert isinstance(kernel, Kernel), kernel.log
    blocks = blocks_per_sm(kernel.usage, threads_of_either(tactic), LIMITS[number])
    return Figures(usage=kernel.usage, loop=count_loop(kernel, None), blocks=blocks)


def gate(tactic, number, found):
    """What is missed, in words."""
    faults = []
    if found.usage.spill_bytes or found.usage.stack_bytes:
        faults.append(f"{found.usage.spill_bytes} bytes spilt")
    if found.loop is not None and found.loop.count(*LOCAL):
        faults.append("local memory in the loop")
    budget = PAIR_REGISTERS.get(tactic.name)
    if budget is not None and number >= 80 and found.usage.registers > budget:
        faults.append(f"{found.usage.registers} registers, at most {budget}")
    if isinstance(tactic, Gemm):
        faults += _gemm_faults(tactic, number, found)
    return faults


def _gemm_faults(tactic, number, found):
    tile = (tactic.tile.rows, tactic.tile.columns, tactic.tile.depth)
    if number >= 80 and found.usage.registers > REGISTERS[tile]:
        yield f"{found.usage.registers} registers, at most {REGISTERS[tile]}"
    if tactic.pointwise:
        return
    for name, shares in (("CUTLASS", CUTLASS_SHARE), ("goal", GOAL_SHARE)):
        least = shares.get((number, tile))
        share = found.loop.mma_share if found.loop else 0.0
        if least is not None and share < least:
            yield f"share {share:.1%} is below {name}'s {least:.1%}"
