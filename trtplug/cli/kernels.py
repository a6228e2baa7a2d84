"""`trtplug kernels list|compile|check`: the CBR kernels, compiled and emulated without a GPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from trtplug.cli.options import Format, format_option, model_argument
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

_TARGET = click.option(
    "--target",
    multiple=True,
    help="A profile (rtx4090), an SM (sm_89), local or all; repeatable.",
)
_SHAPE = click.option(
    "--shape", multiple=True, help="NAME=MIN[:OPT:MAX], such as x=1x3x640x640; repeatable."
)
_PRECISION = click.option(
    "--precision",
    default="keep",
    show_default=True,
    help="keep, fp16 or bf16: the type that kernels compute in, whatever the model's.",
)
_SHARED_KIB = click.option(
    "--shared-kib",
    type=int,
    default=47,
    show_default=True,
    help="Shared memory that a block may take, in KiB (to 48).",
)
_SITE = click.option(
    "--site",
    multiple=True,
    help="Only these sites, by their convolution, or pairs, as dw+pw; repeatable.",
)
_TACTIC = click.option(
    "--tactic", multiple=True, help="Only these tactics, such as igemm_64x64x64_s2; repeatable."
)
_JOBS = click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Kernels compiled at once.  [default: the processors here]",
)


def _of_a_model(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say which kernels of which model are meant."""
    for option in (_TACTIC, _SITE, _SHARED_KIB, _PRECISION, _SHAPE, _TARGET, model_argument):
        command = option(command)
    return command


@click.group()
def kernels() -> None:
    """Show the kernels of CBR and CBRPair: tactics, a verdict."""


@kernels.command("list")
@format_option
def list_tactics(format: Format) -> int:
    """List the tactics: where each exists, in which types, with how much shared memory."""
    from trtplug.cli.kernel_tables import render_tactics

    click.echo(render_tactics(format), nl=False)
    return DONE


@kernels.command("compile")
@_of_a_model
@_JOBS
@format_option
def compile_model(jobs: int | None, format: Format, **wanted: Any) -> int:  # noqa: ANN401 - the values of _of_a_model
    """Compile every legal tactic of a model's sites and pairs.

    Shows the resources of each, and times that are predicted.
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
        wanted["shared_kib"] * 1024,
    )
    click.echo(render_kernels(document, format), nl=False)
    return DONE if all(k.status == "ok" for k in document.kernels) else BUILD_FAILED


@kernels.command("check")
@_of_a_model
@_JOBS
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random inputs.")
@click.option(
    "--blocks",
    type=click.IntRange(2),
    default=8,
    show_default=True,
    help="Blocks run of each kernel, where its grid has more.",
)
@click.option(
    "--activations",
    type=click.Choice(("random", "model")),
    default="random",
    show_default=True,
    help="With model, ONNX Runtime runs the model, and the kernels of each site or pair get its "
    "own input and weights and must meet its output.",
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
    """Run the kernels in the emulator: numbers against the reference, races, bounds, conflicts."""
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
    click.echo(render_checks(document, format), nl=False)
    return DONE if all(c.status == "passed" for c in checks) else GATE_FAILED


def _activations(job: _Job, seed: int, sites: Sequence[str]) -> dict[str, SiteTensors]:
    from trtplug.measure.activations import read_activations

    return read_activations(job.model, job.sizes, seed, sites or None)


class _Job:
    """What the arguments ask for, read and listed."""

    model: Model
    sizes: dict[str, Sizes]
    """Of the model's inputs, as the opt shapes have them."""
    asked: tuple[Asked, ...]
    unsized: tuple[Unsized, ...]
    tasks: tuple[Task, ...]
    excluded: tuple[ExcludedEntry, ...]

    def __init__(
        self,
        *,
        model: Path,
        target: Sequence[str],
        shape: Sequence[str],
        precision: str,
        shared_kib: int,
        site: Sequence[str],
        tactic: Sequence[str],
    ) -> None:
        from trtplug.kernels.listing import list_tasks
        from trtplug.kernels.problems import PRECISIONS, read_problems
        from trtplug.tensor import parse_shape_range

        if precision not in PRECISIONS:
            raise UsageError(f"unknown precision {precision!r}", f"one of {', '.join(PRECISIONS)}")
        if not 1 <= shared_kib <= 48:
            raise UsageError(f"--shared-kib {shared_kib} is not between 1 and 48")
        _check_tactics(tactic)
        targets = _targets(target, shared_kib * 1024)
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
    from trtplug.build.make_plan import Builder, resolve_targets
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
    kernels = Builder(name="kernels", version="1", sms=tuple(Sm(n) for n in sorted(SMS)))
    found = []
    for sm, names in resolve_targets(tuple(targets), kernels, profiles, local_sm).items():
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
