"""All legal tactics of a model's sites, compiled, for `trtplug kernels compile`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.catalog import CATALOG, Catalog
from trtplug.kernels.choose import KernelTarget
from trtplug.kernels.compile import CompiledKernel, Outcome, compile_many
from trtplug.kernels.family import AnyTactic
from trtplug.kernels.loop import count_loops
from trtplug.kernels.predict import predict
from trtplug.kernels.problems import Asked, Unsized
from trtplug.kernels.sm import SMS, blocks_per_sm
from trtplug.kernels.source import KernelSource
from trtplug.ops.cbr import CbrAttributes
from trtplug.ops.cbr_pair import CbrPairAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtplug.kernels.sass import MainLoop
    from trtplug.model.load import Model
    from trtplug.store import Store


SCHEMA = "trtplug.kernels/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemEntry:
    """One fused convolution, or one fused pair, of the model."""

    sites: tuple[str, ...]
    """Labels of the convolutions that have it; of pairs both, such as `dw+pw`."""
    attributes: CbrAttributes | CbrPairAttributes
    outputs: int
    dtype: str
    input_min: tuple[int, ...]
    input_opt: tuple[int, ...]
    input_max: tuple[int, ...]
    tactics: int
    """Tactics of its op: on each SM so many are legal or excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEntry:
    """One tactic for one problem on one SM."""

    problem: int
    """Place in `problems`."""
    tactic: str
    sm: str
    gpu: str | None
    """Profile that the prediction is for; None where the SM has none."""
    status: str
    """`ok`, `refused` or `unsupported-sm`."""
    registers: int | None
    shared_bytes: int | None
    spill_bytes: int | None
    blocks_per_sm: int | None
    mma_share: float | None
    """Share of matrix instructions in the main loop; None where it has none."""
    predicted_us: float | None
    """By the model of `trtplug.kernels.predict`, at the opt sizes; not measured."""
    bound_by: str | None
    ptx_version: str | None
    digest: str
    """Of the kernel's source."""
    log: str | None
    """The compiler's words where it refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedEntry:
    """A tactic that a problem cannot run with."""

    problem: int
    tactic: str
    sm: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsDocument:
    """Everything that `trtplug kernels compile` says."""

    schema: str
    model: str
    sha256: str
    shared_limit_bytes: int
    problems: tuple[ProblemEntry, ...]
    kernels: tuple[KernelEntry, ...]
    excluded: tuple[ExcludedEntry, ...]
    unsized: tuple[Unsized, ...]
    """Sites without kernels, for want of sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kernel to be made."""

    problem: int
    asked: Asked
    target: KernelTarget
    tactic: AnyTactic
    source: KernelSource


def list_tasks(
    asked: Sequence[Asked], targets: Sequence[KernelTarget]
) -> tuple[tuple[Task, ...], tuple[ExcludedEntry, ...]]:
    """The kernels of all legal tactics, and why the others are none."""
    tasks: list[Task] = []
    excluded: list[ExcludedEntry] = []
    headers = [target.catalog.headers() for target in targets]
    for (number, each), (target, files) in itertools.product(
        enumerate(asked), zip(targets, headers, strict=True)
    ):
        sm = target.sm
        for one in target.catalog.list(each.problem, sm, target.shared_bytes):
            tactic, reason = one.tactic, one.exclusion
            if reason is None:
                source = tactic.generate(each.problem, sm, files)
                tasks.append(
                    Task(problem=number, asked=each, target=target, tactic=tactic, source=source)
                )
            else:
                excluded.append(
                    ExcludedEntry(
                        problem=number, tactic=tactic.name, sm=str(sm), reason=reason.value
                    )
                )
    return tuple(tasks), tuple(excluded)


def compile_tasks(
    tasks: Sequence[Task],
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """The outcome of each task, in order.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    return compile_many([(t.source, t.target.sm) for t in tasks], store, jobs, done)


def count_task_loops(
    outcomes: Sequence[Outcome], store: Store | None, jobs: int
) -> tuple[MainLoop | None, ...]:
    """The main loop of each kernel, in order; None for what is no kernel or has none."""
    kernels = [o for o in outcomes if isinstance(o, CompiledKernel)]
    loops = iter(count_loops(kernels, store, jobs))
    return tuple(next(loops) if isinstance(o, CompiledKernel) else None for o in outcomes)


def make_document(
    model: Model,
    asked: Sequence[Asked],
    unsized: tuple[Unsized, ...],
    tasks: Sequence[Task],
    outcomes: Sequence[Outcome],
    loops: Sequence[MainLoop | None],
    excluded: tuple[ExcludedEntry, ...],
    shared_bytes: int,
    catalog: Catalog = CATALOG,
) -> KernelsDocument:
    """Everything as a document; kernels of one problem and SM in order of predicted time."""
    entries = [_entry(*each) for each in zip(tasks, outcomes, loops, strict=True)]
    return KernelsDocument(
        schema=SCHEMA,
        model=model.path.name,
        sha256=model.sha256,
        shared_limit_bytes=shared_bytes,
        problems=tuple(_problem(each, catalog) for each in asked),
        kernels=tuple(sorted(entries, key=_order)),
        excluded=excluded,
        unsized=unsized,
    )


def _order(entry: KernelEntry) -> tuple[int, str, float, str]:
    """A sort key; kernels without a prediction come last."""
    time = float("inf") if entry.predicted_us is None else entry.predicted_us
    return (entry.problem, entry.sm, time, entry.tactic)


def _problem(asked: Asked, catalog: Catalog) -> ProblemEntry:
    problem = asked.problem
    return ProblemEntry(
        sites=asked.sites,
        attributes=problem.attributes,
        outputs=problem.outputs,
        dtype=problem.dtype,
        input_min=problem.x.min,
        input_opt=problem.x.opt,
        input_max=problem.x.max,
        tactics=len(catalog.of(problem)),
    )


def _entry(task: Task, outcome: Outcome, loop: MainLoop | None) -> KernelEntry:
    kernel = outcome if isinstance(outcome, CompiledKernel) else None
    tactic, profile, sm = task.tactic, task.target.profile, task.target.sm
    facts = SMS.get(sm.number)
    prediction = None
    if kernel is not None and profile is not None:
        problem = task.asked.problem
        prediction = predict(tactic, problem, profile, kernel.usage, problem.x.opt)
    blocks = blocks_per_sm(kernel.usage, tactic.threads, facts) if kernel and facts else None
    return KernelEntry(
        problem=task.problem,
        tactic=tactic.name,
        sm=str(sm),
        gpu=profile.name if profile else None,
        status="ok" if isinstance(outcome, CompiledKernel) else outcome.status,
        registers=kernel.usage.registers if kernel else None,
        shared_bytes=kernel.usage.shared_bytes if kernel else None,
        spill_bytes=kernel.usage.spill_bytes if kernel else None,
        blocks_per_sm=blocks,
        mma_share=round(loop.mma_share, 4) if loop and loop.mma else None,
        predicted_us=round(prediction.predicted_us, 2) if prediction else None,
        bound_by=prediction.bound_by if prediction else None,
        ptx_version=kernel.ptx_version if kernel else None,
        digest=task.source.digest,
        log=None if isinstance(outcome, CompiledKernel) else outcome.log,
    )
