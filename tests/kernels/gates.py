"""Static gates of kernels, for the tests and for scripts/bench_kernels.

Shares of CUTLASS were measured on its own implicit GEMM (conv2d fprop, FP16 NHWC, FP32 sums, bias
and ReLU, optimized iterator) for the same tile, in the main loop as counted here. Budgets of
registers are what lets as many blocks fit as the tile is made for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.kernels.pair_problems import pair
from tests.kernels.problems import problem
from trtplug.emulator.checks import Checks
from trtplug.emulator.parse import parse_module
from trtplug.emulator.run import Buffer, launch
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.compile import compile_kernel, compile_many
from trtplug.kernels.depthwise import Depthwise
from trtplug.kernels.direct import Direct
from trtplug.kernels.emulate import empty_output, input_arrays, random_tensors
from trtplug.kernels.gemm import Gemm
from trtplug.kernels.loop import count_loops
from trtplug.kernels.pair import PairTactic
from trtplug.kernels.sass import MainLoop
from trtplug.kernels.sm import SMS, Usage, blocks_per_sm
from trtplug.kernels.stem import Stem
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


SECTORS = {Gemm: 1.0, Depthwise: 1.1, PairTactic: 1.1}
"""Kind of tactic -> sectors of global memory over the fewest possible, at most.

Implicit GEMMs copy whole rows of chunks. Rows of a depthwise kernel, or of that part of a
pair, begin where they begin. Stems gather every second element of LINEAR rows, and the direct
kernel in HWC8 one lane of each pixel: both work from the L1 cache, and predictions reckon with it.
"""


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


SAMPLES = {tactic.name: _sample(tactic) for tactic in CATALOG.tactics}


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
    return measure_all([tactic], number)[0]


def measure_all(tactics, number, jobs=1):
    """The figures of several tactics on one SM, in order."""
    sm = Sm(number)
    there = [t for t in tactics if _is_legal(t, sm)]
    sources = [(t.generate(sample_of(t), sm), sm) for t in there]
    kernels = compile_many(sources, None, jobs)
    found = {
        tactic.name: Figures(
            usage=kernel.usage,
            loop=loop,
            blocks=blocks_per_sm(kernel.usage, tactic.threads, SMS[number]),
        )
        for tactic, kernel, loop in zip(
            there, kernels, count_loops(kernels, None, jobs), strict=True
        )
    }
    return [found.get(t.name) for t in tactics]


def _is_legal(tactic, sm):
    return tactic.exclusion(sample_of(tactic), sm, 48 * 1024) is None


def count(tactic, number):
    """The emulator's counters over one block of the sample, inside an image."""
    given = sample_of(tactic)
    kernel = compile_kernel(tactic.generate(given, Sm(number)), Sm(number), None)
    tensors = random_tensors(given, given.x.opt, np.random.default_rng(0))
    inputs = input_arrays(tactic, given, tensors)
    y = empty_output(given.output(given.x.opt), given.dtype, tactic.layout)
    launching = tactic.launch(given, given.x.opt)
    arguments = [
        *(Buffer(name=n, data=d) for n, d in inputs.items()),
        *given.arguments(given.x.opt),
        Buffer(name="y", data=y, role="output"),
    ]
    return launch(
        parse_module(kernel.ptx),
        tactic.kernel,
        launching.grid,
        launching.block,
        0,
        arguments,
        Checks(races=False, memory=False),
        # A block begins in the middle of one of the 8 images, or so.
        blocks=(launching.grid[0] * 7 // 16,),
    ).counters


def traffic_faults(tactic, counters):
    """Where memory is used worse than the tactic is made for, in words."""
    faults = []
    if counters.shared_ratio > 1.0:
        faults.append(f"{counters.shared_ratio:.2f} waves of shared memory for one")
    most = SECTORS.get(type(tactic))
    if most is not None and counters.global_ratio > most:
        faults.append(f"{counters.global_ratio:.2f} sectors of global memory for one")
    return faults


def gate(tactic, number, found):
    """What is missed, in words."""
    faults = []
    if found.usage.spill_bytes or found.usage.stack_bytes:
        faults.append(f"{found.usage.spill_bytes} bytes spilt")
    if found.loop is not None and found.loop.count("LDL", "STL"):
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
