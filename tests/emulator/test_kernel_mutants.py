"""Faults put into the CBR kernels themselves, one line each, and what the emulator reports."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from tests.kernels.kernels import find_tactic
from tests.kernels.problems import problem
from trtplug.emulator.checks import Checks
from trtplug.kernels.compile import CompiledKernel, compile_kernel
from trtplug.kernels.emulate import Checked, random_tensors, run_tactic
from trtplug.target import Sm

DENSE = problem((1, 24, 9, 9), 36, activation="relu", residual="before_activation")
DEPTHWISE = problem((1, 24, 9, 9), 24, group=24)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A line of a header, changed."""

    header: str
    old: str
    new: str
    found: str
    """Kind of finding; `numbers`, `waves` or a word of the verdict's problems otherwise."""
    tactic: str = "igemm_64x32x64_s3"
    sm: int = 80
    steps: int = 100_000


GEMM, COPY = "cbr/igemm.cuh", "common/copy.cuh"
MUTANTS = {
    "no barrier before the next tile is fetched": Mutant(
        header=GEMM, old="__syncthreads();\n    fetch(", new="fetch(", found="race"
    ),
    "waits for one group too few": Mutant(
        header=GEMM,
        old="wait_copies<kAhead - 1>",
        new="wait_copies<kAhead>",
        found="unfinished_copy",
    ),
    "no commit": Mutant(
        header=GEMM,
        old="commit_copies();  // Of nothing",
        new="// Of nothing",
        found="unfinished_copy",
    ),
    "fetches into the wrong stage": Mutant(
        header=GEMM,
        old="fetch((stage + kAhead) %",
        new="fetch((stage + kAhead + 1) %",
        found="unfinished_copy",
    ),
    "no group for a tile that is not fetched": Mutant(
        header=GEMM,
        old="    }\n    commit_copies();  // Of nothing",
        new="      commit_copies();\n    }\n    // Of nothing",
        found="unfinished_copy",
    ),
    "fetches beyond the last tile": Mutant(
        header=GEMM,
        old="i + stage + kAhead < kTiles",
        new="i + stage + kAhead <= kTiles",
        found="out_of_bounds",
    ),
    "no barrier before the epilogue": Mutant(
        header=GEMM,
        old="__syncthreads();\n  if (Site::kResidual",
        new="if (Site::kResidual",
        found="race",
    ),
    "no wait for the residual": Mutant(
        header=GEMM,
        old="wait_copies<0>();\n#else",
        new="\n#else",
        found="unfinished_copy",
    ),
    "no barrier behind the residual": Mutant(
        header=GEMM,
        old="__syncthreads();\n  }\n  const float* biases",
        new="}\n  const float* biases",
        found="race",
    ),
    "no barrier before the stores": Mutant(
        header=GEMM, old="__syncthreads();\n  each_piece", new="each_piece", found="race"
    ),
    "a barrier for half of the threads": Mutant(
        header=GEMM,
        old="__syncthreads();\n    fetch(",
        new="if (threadIdx.x < blockDim.x / 2) __syncthreads();\n    fetch(",
        found="divergent_barrier",
    ),
    "a loop that does not count": Mutant(
        header=GEMM,
        old="i < kTiles; i += Tile::kStages",
        new="i < kTiles; i += Tile::kStages * (blockDim.y - 1)",
        found="livelock",
        tactic="igemm_128x64x32_s3",
        steps=200,
    ),
    "no swizzle": Mutant(header=COPY, old="(chunk ^ mask)", new="chunk", found="waves"),
    "a copy that is not 16-byte aligned": Mutant(
        header=GEMM,
        old="from_ = static_cast<const char*>(weights) +",
        new="from_ = static_cast<const char*>(weights) + 8 +",
        found="misaligned",
    ),
    "padding is read": Mutant(
        header="cbr/vector_loader.cuh", old="return 0;", new="return 16;", found="out_of_bounds"
    ),
    "rows past the last are stored": Mutant(
        header=GEMM, old="first_row + row < count &&", new="true &&", found="out_of_bounds"
    ),
    "half of the output is not stored": Mutant(
        header=GEMM, old="if (inside) {", new="if (inside && threadIdx.x % 2) {", found="unwritten"
    ),
    "all blocks write the first tile": Mutant(
        header=GEMM,
        old="const int first_row = blockIdx.x * Tile::kRows;",
        new="const int first_row = 0;",
        found="double_write",
    ),
    "the bias of the next output": Mutant(
        header=GEMM, old="first + at.shift.x", new="first + at.shift.y", found="numbers"
    ),
    "a bias at an odd place": Mutant(
        header=GEMM, old="(biases + column)", new="(biases + column + 1)", found="misaligned"
    ),
    "padding lanes are not zero": Mutant(
        header=GEMM, old="at.first ? first : 0.0f", new="1.0f",
        found="padding",
    ),
    "weights are not stored before the first product": Mutant(
        header=GEMM,
        old="weights.store(shared);\n  loader.advance",
        new="loader.advance",
        found="uninitialised",
        sm=75,
    ),
    "no barrier between staged tiles": Mutant(
        header=GEMM,
        old="weights.advance();\n      __syncthreads();\n    }\n  };",
        new="weights.advance();\n    }\n  };",
        found="race",
        sm=75,
    ),
    "columns past the last are stored": Mutant(
        header="cbr/depthwise.cuh",
        old="if (column + o < at.columns) {",
        new="if (column + o < 99) {",
        found="double_write",
        tactic="depthwise_2",
    ),
}  # fmt: skip


def run(mutant: Mutant, *, mutated: bool = True) -> Checked:
    tactic = find_tactic(mutant.tactic)
    assert tactic is not None
    given = DEPTHWISE if mutant.tactic.startswith("depthwise") else DENSE
    sm = Sm(mutant.sm)
    source = tactic.generate(given, sm)
    if mutated:
        headers = dict(source.headers)
        assert headers[mutant.header].count(mutant.old) == 1, "the kernel has changed: so must this"
        headers[mutant.header] = headers[mutant.header].replace(mutant.old, mutant.new)
        source = dataclasses.replace(source, headers=tuple(headers.items()))
    outcome = compile_kernel(source, sm, None)
    assert isinstance(outcome, CompiledKernel), outcome.log
    tensors = random_tensors(given, given.x.opt, np.random.default_rng(0))
    return run_tactic(tactic, given, outcome.ptx, tensors, checks=Checks(steps=mutant.steps))


@pytest.mark.parametrize(("tactic", "sm"), [("igemm_64x32x64_s3", 80), ("igemm_64x32x64_s3", 75),
                                            ("depthwise_2", 80)])  # fmt: skip
def test_without_a_fault_nothing_is_found(tactic: str, sm: int) -> None:
    result = run(Mutant(header="", old="", new="", found="", tactic=tactic, sm=sm), mutated=False)
    assert (result.problems, result.findings) == ((), ())
    assert result.counters.shared_ratio == 1.0


@pytest.mark.parametrize("name", MUTANTS)
def test_caught(name: str) -> None:
    mutant = MUTANTS[name]
    result = run(mutant)
    kinds = {f.kind for f in result.findings}
    if mutant.found == "waves":
        assert result.counters.shared_ratio > 1.5
    elif mutant.found == "numbers":
        assert kinds == set()
        assert result.relative_error > 10 * result.tolerance
    elif mutant.found == "padding":
        assert any("padding lane" in p for p in result.problems)
    else:
        assert mutant.found in kinds, result.findings
