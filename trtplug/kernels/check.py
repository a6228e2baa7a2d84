"""The emulator's verdict on the kernels of a model's sites, for `trtplug kernels check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.errors import PtxError
from trtplug.kernels.compile import CompiledKernel
from trtplug.kernels.emulate import Tensors, random_tensors, relative_error, run_tactic
from trtplug.kernels.layout import from_bits, to_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from trtplug.kernels.compile import Outcome
    from trtplug.kernels.emulate import Checked
    from trtplug.kernels.listing import Task
    from trtplug.kernels.problem import AnyProblem

    Array = NDArray[Any]

SCHEMA = "trtplug.kernel-checks/1"

MODEL_TOLERANCE = {"float": 1e-4, "float16": 5e-3, "bfloat16": 4e-2}
"""Largest relative error against the model's own output of a site, which is in FP32 mostly.

Unlike in `TOLERANCE` there are the roundings of inputs and weights in it as well: each of the two
is as large as that of the output, and where terms cancel they weigh more.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SiteTensors:
    """Inputs of a model's site, or of a pair of sites, and its output; all float32."""

    x: Array
    weights: tuple[Array, ...]
    """Of each convolution."""
    biases: tuple[Array, ...]
    """Of each convolution."""
    residual: Array | None
    output: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEntry:
    """The verdict on one kernel."""

    sites: tuple[str, ...]
    """Convolutions, or pairs, of the problem; one alone where the tensors are the model's own."""
    tactic: str
    sm: str
    status: str
    """`passed`, `failed`, `not_emulated`; without a kernel `refused` or `unsupported-sm`."""
    input_dims: tuple[int, ...]
    blocks: int
    """Blocks that were run."""
    block_numbers: tuple[int, ...] | None
    """Which, where not all; x fastest."""
    grid_blocks: int
    """Blocks of the grid at these sizes."""
    relative_error: float | None
    """||out - reference|| / ||reference|| over what those blocks write."""
    tolerance: float | None
    model_error: float | None
    """The same against ONNX Runtime's output of the site; None with random tensors."""
    model_tolerance: float | None
    problems: tuple[str, ...]
    """What was found: wrong numbers, races, accesses out of bounds and the like, in words."""
    warp_instructions: int | None
    shared_ratio: float | None
    """Waves of shared memory over the fewest possible."""
    global_ratio: float | None
    """Sectors of global memory over the fewest possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksDocument:
    """Everything that `trtplug kernels check` says."""

    schema: str
    model: str
    sha256: str
    seed: int
    activations: str
    """`random`, or `model`: inputs of sites as they are in the model, and its weights."""
    checks: tuple[CheckEntry, ...]


def check_tasks(
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    *,
    seed: int,
    most_blocks: int,
    given: Mapping[str, SiteTensors] | None = None,
    done: Callable[[CheckEntry], None] = lambda _: None,
) -> Iterator[CheckEntry]:
    """The verdict on each kernel at its problem's opt sizes.

    Args:
        tasks: what was compiled.
        outcomes: what came of each.
        seed: of the inputs, and of the choice of blocks.
        most_blocks: where the grid has more blocks, this many are run: the first, the last, and
            others drawn between them.
        given: the model's own tensors by site or pair: then each of a problem is run with its own,
            and those without are left out. Random ones by default.
        done: called with each verdict.
    """
    for number, (task, outcome) in enumerate(zip(tasks, outcomes, strict=True)):
        rng = np.random.default_rng((seed, number))
        problem, sites = task.asked.problem, task.asked.sites
        if given is None:
            tensors = random_tensors(problem, problem.x.opt, rng)
            runs = [_Run(sites=sites, tensors=tensors, output=None)]
        else:
            runs = [_model_run(problem, s, given[s]) for s in sites if s in given]
        for run in runs:
            entry = _check(task, outcome, run, rng, most_blocks)
            done(entry)
            yield entry


def checks_of(tasks: Sequence[Task], given: Mapping[str, SiteTensors] | None) -> int:
    """Verdicts that `check_tasks` will give."""
    if given is None:
        return len(tasks)
    return sum(site in given for task in tasks for site in task.asked.sites)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Run:
    """What a kernel is run with."""

    sites: tuple[str, ...]
    tensors: Tensors
    output: Array | None
    """The model's own."""
    too_large: int = 0
    """Of the model's values, those that the type of a kernel does not hold."""


def _model_run(problem: AnyProblem, site: str, given: SiteTensors) -> _Run:
    """The model's numbers as the kernel's types hold them."""
    too_large = 0

    def held(array: Array) -> Array:
        nonlocal too_large
        with np.errstate(over="ignore"):
            rounded = from_bits(to_bits(array, problem.dtype), problem.dtype)
        too_large += int((np.isinf(rounded) & np.isfinite(array)).sum())
        return rounded

    residual = given.residual
    if residual is not None:
        shape = problem.output(given.x.shape)
        residual = held(np.ascontiguousarray(np.broadcast_to(residual, shape)))
    tensors = Tensors(
        x=held(given.x),
        weights=tuple(map(held, given.weights)),
        biases=given.biases,
        residual=residual,
    )
    return _Run(sites=(site,), tensors=tensors, output=given.output, too_large=too_large)


def _check(
    task: Task, outcome: Outcome, run: _Run, rng: np.random.Generator, most_blocks: int
) -> CheckEntry:
    tactic, problem = task.tactic, task.asked.problem
    grid = tactic.launch(problem, run.tensors.x.shape).grid
    total = int(grid[0] * grid[1] * grid[2])
    if not isinstance(outcome, CompiledKernel):
        return _entry(task, run, outcome.status, total, (outcome.log,))
    blocks = None if total <= most_blocks else sample_blocks(total, most_blocks, rng)
    try:
        checked = run_tactic(tactic, problem, outcome.ptx, run.tensors, blocks=blocks)
    except PtxError as unknown:
        return _entry(task, run, "not_emulated", total, (unknown.message,))
    found = [*checked.problems, *map(str, checked.findings)]
    if run.too_large:
        found.insert(0, f"{run.too_large} of the model's values are beyond {problem.dtype}")
    error, tolerance = None, MODEL_TOLERANCE[problem.dtype]
    if run.output is not None:
        error = relative_error(checked.output, run.output)
        if not error <= tolerance:
            found.append(f"relative error {error:.2e} against the model is above {tolerance:g}")
    status = "failed" if found else "passed"
    return _entry(task, run, status, total, tuple(found), checked, blocks, error)


def sample_blocks(total: int, wanted: int, rng: np.random.Generator) -> tuple[int, ...]:
    """`wanted` of `total` block numbers: the first, the last, and others at random."""
    inner = rng.choice(total - 2, size=wanted - 2, replace=False) + 1 if wanted > 2 else ()
    return tuple(sorted({0, total - 1, *map(int, inner)}))


def _entry(
    task: Task,
    run: _Run,
    status: str,
    total: int,
    found: tuple[str, ...],
    checked: Checked | None = None,
    blocks: tuple[int, ...] | None = None,
    model_error: float | None = None,
) -> CheckEntry:
    counters = checked.counters if checked else None
    return CheckEntry(
        sites=run.sites,
        tactic=task.tactic.name,
        sm=str(task.target.sm),
        status=status,
        input_dims=tuple(run.tensors.x.shape),
        blocks=checked.blocks if checked else 0,
        block_numbers=blocks,
        grid_blocks=total,
        relative_error=_finite(checked.relative_error) if checked else None,
        tolerance=checked.tolerance if checked else None,
        model_error=_finite(model_error),
        model_tolerance=MODEL_TOLERANCE[task.asked.problem.dtype]
        if run.output is not None
        else None,
        problems=found,
        warp_instructions=counters.warp_instructions if counters else None,
        shared_ratio=round(counters.shared_ratio, 4) if counters else None,
        global_ratio=round(counters.global_ratio, 4) if counters else None,
    )


def _finite(value: float | None) -> float | None:
    """JSON knows no NaN and no infinity."""
    return value if value is not None and np.isfinite(value) else None
