"""`trtplug kernels list|compile|check`: trtplug's own CUDA kernels, without a GPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.options import (
    Format,
    Group,
    echo,
    epilog,
    format_option,
    model_argument,
    parse_bytes,
    precision_option,
    shape_option,
    target_option,
)
from trtplug.errors import BUILD_FAILED, DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trtplug.kernels.check import SiteTensors
    from trtplug.kernels.choose import KernelTarget
    from trtplug.kernels.listing import ExcludedEntry, Task
    from trtplug.kernels.problems import Asked, Unsized
    from trtplug.model.load import Model
    from trtplug.store import Store
    from trtplug.tensor import Sizes

_SHARED_MEMORY = click.option(
    "--shared-memory",
    metavar="SIZE",
    default="47KiB",
    show_default=True,
    help="Shared memory per block, at most 48KiB.",
)
_SITE = click.option(
    "--site",
    multiple=True,
    metavar="SITE",
    help="Only these sites (name of the convolution) or pairs (dw+pw); repeatable.",
)
_TACTIC = click.option(
    "--tactic",
    multiple=True,
    metavar="TACTIC",
    help="Only these tactics, such as igemm_64x64x64_s2; repeatable.",
)
_JOBS = click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Number of parallel compilations.  [default: one per CPU]",
)


def _of_a_model(command: Callable[..., int]) -> Callable[..., int]:
    """The options that select kernels of a model."""
    for option in (
        _TACTIC,
        _SITE,
        _SHARED_MEMORY,
        precision_option,
        shape_option,
        target_option,
        model_argument,
    ):
        command = option(command)
    return command


@click.group(
    cls=Group,
    epilog=epilog(
        "trtplug kernels compile det.onnx --target rtx4090 --precision fp16", statuses=range(5)
    ),
)
def kernels() -> None:
    """List, compile and check trtplug's own CUDA kernels."""


@kernels.command("list", epilog=epilog("trtplug kernels list"))
@format_option
def list_tactics(format: Format) -> int:
    """List the tactics with data types, layout and resources."""
    from trtplug.cli.kernel_tables import render_tactics

    echo(render_tactics(format))
    return DONE


@kernels.command(
    "compile",
    epilog=epilog(
        "trtplug kernels compile det.onnx --target rtx4090 --shape x=1x3x640x640",
        statuses=(0, 2, 3, 4),
    ),
)
@_of_a_model
@_JOBS
@format_option
def compile_model(jobs: int | None, format: Format, **wanted: Any) -> int:  # noqa: ANN401 - the values of _of_a_model
    """Compile all tactics for the sites and pairs of a model.

    Shows registers, shared memory, occupancy and predicted times.
    """
    from trtplug.cli.kernel_tables import render_kernels
    from trtplug.cli.progress import counting
    from trtplug.kernels.listing import compile_tasks, count_task_loops, make_document

    job = _Job(**wanted)
    with counting("compiled", len(job.tasks)) as step:
        outcomes = compile_tasks(job.tasks, _store(), _jobs(jobs), lambda _: step())
    loops = count_task_loops(outcomes, _store(), _jobs(jobs))
    document = make_document(
        job.model,
        job.asked,
        job.unsized,
        job.tasks,
        outcomes,
        loops,
        job.excluded,
        job.shared_bytes,
    )
    echo(render_kernels(document, format))
    return DONE if all(k.status == "ok" for k in document.kernels) else BUILD_FAILED


@kernels.command(
    "check",
    epilog=epilog(
        "trtplug kernels check det.onnx --target sm_89 --shape x=1x3x640x640 --precision fp16",
        statuses=(0, 1, 2, 4),
        failed="a kernel failed a check",
    ),
)
@_of_a_model
@_JOBS
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the random inputs."
)
@click.option(
    "--blocks",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    metavar="N",
    help="Blocks to run per kernel, if its grid has more.",
)
@click.option(
    "--activations",
    type=click.Choice(("random", "model"), case_sensitive=False),
    default="random",
    show_default=True,
    help="Random inputs, or the model's own from ONNX Runtime, whose output is then compared too.",
)
@format_option
def check_model(
    jobs: int | None,
    seed: int,
    blocks: int,
    activations: str,
    format: Format,
    **wanted: Any,  # noqa: ANN401 - the values of _of_a_model
) -> int:
    """Run the kernels in an emulator and check the results.

    Compares results with a float64 reference, and looks for races, accesses out of bounds and bank
    conflicts.
    """
    from trtplug.cli.kernel_tables import render_checks
    from trtplug.cli.progress import counting
    from trtplug.kernels.check import SCHEMA, ChecksDocument, check_tasks, checks_of
    from trtplug.kernels.listing import compile_tasks

    job = _Job(**wanted)
    given = _activations(job, seed, wanted["site"]) if activations == "model" else None
    with counting("compiled", len(job.tasks)) as step:
        outcomes = compile_tasks(job.tasks, _store(), _jobs(jobs), lambda _: step())
    with counting("checked", checks_of(job.tasks, given)) as step:
        checks = tuple(
            check_tasks(
                job.tasks,
                outcomes,
                seed=seed,
                most_blocks=blocks,
                given=given,
                done=lambda _: step(),
            )
        )
    document = ChecksDocument(
        schema=SCHEMA,
        model=job.model.path.name,
        sha256=job.model.sha256,
        seed=seed,
        activations=activations,
        checks=checks,
    )
    echo(render_checks(document, format))
    return DONE if all(c.status == "passed" for c in checks) else GATE_FAILED


def _activations(job: _Job, seed: int, sites: Sequence[str]) -> dict[str, SiteTensors]:
    from trtplug.measure.activations import read_activations

    return read_activations(job.model, job.sizes, seed, sites or None)


_MOST_SHARED = 48 * 1024
"""Bytes that a block can use without opting in to more."""


class _Job:
    """The kernels that the arguments select."""

    model: Model
    sizes: dict[str, Sizes]
    """Sizes of the model's inputs in the opt shapes."""
    asked: tuple[Asked, ...]
    unsized: tuple[Unsized, ...]
    tasks: tuple[Task, ...]
    excluded: tuple[ExcludedEntry, ...]
    shared_bytes: int

    def __init__(
        self,
        *,
        model: Path,
        target: Sequence[str],
        shape: Sequence[str],
        precision: str,
        shared_memory: str,
        site: Sequence[str],
        tactic: Sequence[str],
    ) -> None:
        from trtplug.kernels.listing import list_tasks
        from trtplug.kernels.problems import read_problems
        from trtplug.tensor import parse_shape_range

        self.shared_bytes = parse_bytes(shared_memory, "--shared-memory")
        if self.shared_bytes > _MOST_SHARED:
            raise UsageError(f"--shared-memory {shared_memory} is more than 48KiB")
        _check_tactics(tactic)
        targets = _targets(target, self.shared_bytes)
        given = tuple(parse_shape_range(s) for s in shape)
        read = read_problems(model, given, precision, pairs=True)
        self.model, self.unsized, self.sizes = read.model, read.unsized, read.sizes
        self.asked = _chosen(read.asked, site)
        tasks, self.excluded = list_tasks(self.asked, targets)
        self.tasks = tuple(t for t in tasks if not tactic or t.tactic.name in tactic)


def _check_tactics(names: Sequence[str]) -> None:
    from trtplug.kernels.catalog import CATALOG

    for name in names:
        if CATALOG.find(name) is None:
            raise UsageError(f"unknown tactic {name!r}", "`trtplug kernels list` lists them")


def _chosen(asked: tuple[Asked, ...], sites: Sequence[str]) -> tuple[Asked, ...]:
    known = {label for each in asked for label in each.sites}
    for name in sites:
        if name not in known:
            raise UsageError(f"the model has no site {name!r}", "`trtplug sites` lists them")
    return tuple(a for a in asked if not sites or set(a.sites) & set(sites))


def _targets(targets: Sequence[str], shared_bytes: int) -> tuple[KernelTarget, ...]:
    """SM and profile of each target; the first profile of an SM stands for it."""
    from trtplug.backends.find import local_sm
    from trtplug.build.plan import resolve_targets
    from trtplug.kernels.choose import KernelTarget
    from trtplug.kernels.sm import SMS
    from trtplug.profile import bundled_folders, find_profile, load_profiles, profiles_of
    from trtplug.settings import read_settings
    from trtplug.target import Sm

    if not targets:
        raise UsageError(
            "no target was given", "add --target rtx4090, --target sm_89 or --target all"
        )
    profiles = load_profiles(bundled_folders(read_settings()))
    sms = tuple(Sm(n) for n in sorted(SMS))
    found = []
    for sm, names in resolve_targets(tuple(targets), sms, profiles, local_sm).items():
        named = find_profile(names[0], profiles) if names else None
        profile = named or next(iter(profiles_of(sm, profiles)), None)
        found.append(KernelTarget(sm=sm, profile=profile, shared_bytes=shared_bytes))
    return tuple(found)


def _store() -> Store:
    from trtplug.settings import read_settings
    from trtplug.store import Store

    return Store(root=read_settings().store)


def _jobs(wanted: int | None) -> int:
    return wanted or len(os.sched_getaffinity(0))
