"""The emulator's verdict on the kernels of a model's sites, for `trtplug kernels check`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.errors import PtxError
from trtplug.kernels.compile import Kernel
from trtplug.tactics.either import check_either, launch_either

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trtplug.candidates.compile import Task
    from trtplug.kernels.compile import Outcome
    from trtplug.tactics.check import Checked

SCHEMA = "trtplug.kernel-checks/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEntry:
    """The verdict on one kernel."""

    sites: tuple[str, ...]
    tactic: str
    sm: str
    status: str
    """`passed`, `failed`, `not_emulated`; without a kernel `refused` or `unsupported-sm`."""
    input_dims: tuple[int, ...]
    blocks: int
    """Blocks that were run."""
    grid_blocks: int
    """Blocks of the grid at these sizes."""
    relative_error: float | None
    """||out - reference|| / ||reference|| over what those blocks write."""
    tolerance: float | None
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
    checks: tuple[CheckEntry, ...]


def check_tasks(
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    *,
    seed: int,
    most_blocks: int,
    done: Callable[[CheckEntry], None] = lambda _: None,
) -> Iterator[CheckEntry]:
    """The verdict on each kernel at its problem's opt sizes, with random inputs.

    Args:
        tasks: what was compiled.
        outcomes: what came of each.
        seed: of the inputs.
        most_blocks: where the grid has more blocks, this many are run: the first, the last, and
            others drawn between them.
        done: called with each verdict.
    """
    for number, (task, outcome) in enumerate(zip(tasks, outcomes, strict=True)):
        rng = np.random.default_rng((seed, number))
        entry = _check(task, outcome, rng, most_blocks)
        done(entry)
        yield entry


def _check(task: Task, outcome: Outcome, rng: np.random.Generator, most_blocks: int) -> CheckEntry:
    tactic, problem = task.candidate.tactic, task.asked.problem
    sizes = problem.x.opt
    grid = launch_either(tactic, problem, sizes).grid
    total = int(grid[0] * grid[1] * grid[2])
    if not isinstance(outcome, Kernel):
        return _entry(task, outcome.status, total, (outcome.log,), None)
    blocks = None if total <= most_blocks else sample_blocks(total, most_blocks, rng)
    try:
        checked = check_either(tactic, problem, outcome.ptx, sizes, rng, blocks)
    except PtxError as error:
        return _entry(task, "not_emulated", total, (error.message,), None)
    found = (*checked.problems, *map(str, checked.findings))
    return _entry(task, "passed" if checked.passed else "failed", total, found, checked)


def sample_blocks(total: int, wanted: int, rng: np.random.Generator) -> tuple[int, ...]:
    """`wanted` of `total` block numbers: the first, the last, and others at random."""
    inner = rng.choice(total - 2, size=wanted - 2, replace=False) + 1 if wanted > 2 else ()
    return tuple(sorted({0, total - 1, *map(int, inner)}))


def _entry(
    task: Task, status: str, total: int, found: tuple[str, ...], checked: Checked | None
) -> CheckEntry:
    counters = checked.counters if checked else None
    error = checked.relative_error if checked else None
    return CheckEntry(
        sites=task.asked.sites,
        tactic=task.candidate.tactic.name,
        sm=str(task.place.sm),
        status=status,
        input_dims=task.asked.problem.x.opt,
        blocks=checked.blocks if checked else 0,
        grid_blocks=total,
        # JSON knows no NaN.
        relative_error=None if error is None or error != error else error,
        tolerance=checked.tolerance if checked else None,
        problems=found,
        warp_instructions=counters.warp_instructions if counters else None,
        shared_ratio=round(counters.shared_ratio, 4) if counters else None,
        global_ratio=round(counters.global_ratio, 4) if counters else None,
    )
