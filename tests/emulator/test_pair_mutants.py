"""Faults put into the pair's kernel, one line each, and what the emulator reports."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.emulator.test_kernel_mutants import Mutant
from tests.kernels.kernels import find_tactic
from tests.kernels.pair_problems import pair
from trtplug.emulator.checks import Checks
from trtplug.kernels.compile import CompiledKernel, compile_kernel
from trtplug.kernels.emulate import random_tensors, run_tactic
from trtplug.target import Sm

if TYPE_CHECKING:
    from trtplug.kernels.emulate import Checked

GIVEN = pair((1, 75, 9, 9), 36, residual="after_activation")

PAIR, FEEDER = "cbr_pair/pair.cuh", "cbr_pair/depthwise_feeder.cuh"
NAME = "pair_64x32x64"
MUTANTS = {
    "no barrier between what is made and its product": Mutant(
        header=PAIR, old="__syncthreads();", new="", found="race"
    ),
    "a barrier for half of the threads": Mutant(
        header=PAIR,
        old="__syncthreads();",
        new="if (threadIdx.x < blockDim.x / 2) __syncthreads();",
        found="divergent_barrier",
    ),
    "fills the tile that is in the product": Mutant(
        header=PAIR, old="feeder.fill(next);", new="feeder.fill(now);", found="race"
    ),
    "the stages never change places": Mutant(
        header=PAIR, old="next = last;", new="next = now;", found="race"
    ),
    "no wait for the weights": Mutant(
        header=PAIR, old="wait_copies<0>();", new="", found="unfinished_copy"
    ),
    "no commit of the weights": Mutant(
        header=PAIR, old="commit_copies();", new="", found="unfinished_copy"
    ),
    "staged weights are not stored": Mutant(
        header=PAIR, old="weights.store(tile);", new="", found="uninitialised", sm=75
    ),
    "the window's padding is read": Mutant(
        header=FEEDER,
        old="if (inside[i] >> s & 1) {",
        new="if (true) {",
        found="out_of_bounds",
    ),
    "pixels past the last have a window": Mutant(
        header=FEEDER, old="index < count;", new="true;", found="out_of_bounds"
    ),
    "lanes past the last channel are trusted": Mutant(
        header=FEEDER,
        old="vector_ * 8 + lane >= Site::kChannels",
        new="vector_ * 8 + lane >= kPixel",
        found="missing",
    ),
    "chunks past the last channel are not cleared": Mutant(
        header=FEEDER,
        old="store_shared(place(tile, i), make_uint4(0, 0, 0, 0));",
        new="",
        found="uninitialised",
    ),
    "chunks past the last channel are made too": Mutant(
        header=FEEDER,
        old="if (kRagged && vector_ >= kVectors) {",
        new="if (false) {",
        found="out_of_bounds",
    ),
    "the bias of other channels": Mutant(
        header=FEEDER, old="__ldg(biases + kVectors)", new="__ldg(biases)", found="numbers"
    ),
    "the bias of the first slice for all": Mutant(
        header=FEEDER, old="(bias_ + offset_ / 2)", new="(bias_)", found="numbers"
    ),
    "a tap of the next row": Mutant(
        header=FEEDER,
        old="(r * (Site::kKernelW * kPixel) + offset_)",
        new="((2 - r) * (Site::kKernelW * kPixel) + offset_)",
        found="numbers",
    ),
    "rows of the tile lie one off the swizzle": Mutant(
        header=FEEDER,
        old="to_ = swizzled<kChunks>(row, chunk);",
        new="to_ = (row * kChunks + chunk) * 16;",
        found="numbers",
    ),
    "no swizzle at all": Mutant(
        header="common/copy.cuh", old="(chunk ^ mask)", new="chunk", found="waves"
    ),
}  # fmt: skip


def run(mutant: Mutant | None, sm: int = 80) -> Checked:
    tactic = find_tactic(NAME)
    assert tactic is not None
    source = tactic.generate(GIVEN, Sm(sm))
    if mutant is not None:
        headers = dict(source.headers)
        assert headers[mutant.header].count(mutant.old) == 1, "the kernel has changed: so must this"
        headers[mutant.header] = headers[mutant.header].replace(mutant.old, mutant.new)
        source = dataclasses.replace(source, headers=tuple(headers.items()))
    outcome = compile_kernel(source, Sm(sm), None)
    assert isinstance(outcome, CompiledKernel), outcome.log
    tensors = random_tensors(GIVEN, GIVEN.x.opt, np.random.default_rng(0))
    return run_tactic(tactic, GIVEN, outcome.ptx, tensors, checks=Checks())


@pytest.mark.parametrize("sm", [75, 80])
def test_without_a_fault_nothing_is_found(sm: int) -> None:
    result = run(None, sm)
    assert (result.problems, result.findings) == ((), ())
    assert result.counters.shared_ratio == 1.0


@pytest.mark.parametrize("name", MUTANTS)
def test_caught(name: str) -> None:
    mutant = MUTANTS[name]
    result = run(mutant, mutant.sm)
    kinds = {f.kind for f in result.findings}
    if mutant.found == "waves":
        assert result.counters.shared_ratio > 1.5
    elif mutant.found == "numbers":
        assert kinds == set()
        assert result.relative_error > 10 * result.tolerance
    elif mutant.found == "missing":
        assert any("outputs are NaN" in p for p in result.problems)
    else:
        assert mutant.found in kinds, (result.findings, result.problems)
