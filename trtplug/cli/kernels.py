"""`trtplug kernels list|compile|check`: the CBR kernels, compiled and emulated without a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.cli.options import Format
from trtplug.errors import BUILD_FAILED, DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.candidates.check import SiteTensors
    from trtplug.candidates.compile import ExcludedEntry, Place, Task
    from trtplug.candidates.problems import Asked, Unsized
    from trtplug.model.load import Model
    from trtplug.store import Store
    from trtplug.tensor import Sizes

app = typer.Typer(
    name="kernels",
    help="The CBR kernels: their tactics, their resources for each SM, and an emulator's verdict.",
    rich_markup_mode=None,
    add_completion=False,
)

_Targets = Annotated[
    list[str] | None,
    typer.Option("--target", help="A profile (rtx4090), an SM (sm_89), local or all; repeatable."),
]
_Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="NAME=MIN[:OPT:MAX], such as x=1x3x640x640; repeatable."),
]
_Precision = Annotated[
    str,
    typer.Option(
        help="keep, fp16 or bf16: the type that kernels compute in, whatever the model's."
    ),
]
_SharedKib = Annotated[
    int, typer.Option("--shared-kib", help="Shared memory that a block may take, in KiB (to 48).")
]
_Jobs = Annotated[
    int | None, typer.Option(help="Kernels compiled at once.  [default: the processors here]")
]
_Form = Annotated[Format, typer.Option("--format", help="Form of the result on stdout.")]
_Only = Annotated[
    list[str] | None,
    typer.Option("--tactic", help="Only these tactics, such as igemm_64x64x64_s2; repeatable."),
]
_Sites = Annotated[
    list[str] | None,
    typer.Option("--site", help="Only these sites, by their convolution; repeatable."),
]


@app.command("list")
def list_tactics(form: _Form = Format.TEXT) -> int:
    """List the tactics: where each exists, in which types, with how much shared memory."""
    from trtplug.cli.kernel_tables import render_tactics

    typer.echo(render_tactics(form), nl=False)
    return DONE


@app.command("compile")
def compile_model(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    target: _Targets = None,
    shape: _Shapes = None,
    precision: _Precision = "keep",
    shared_kib: _SharedKib = 47,
    site: _Sites = None,
    tactic: _Only = None,
    jobs: _Jobs = None,
    form: _Form = Format.TEXT,
) -> int:
    """Compile every legal tactic of a model's sites; show resources and predicted times."""
    from trtplug.candidates.compile import compile_tasks, count_task_loops, make_document
    from trtplug.cli.kernel_progress import counting
    from trtplug.cli.kernel_tables import render_kernels

    job = _Job(model, target, shape, precision, shared_kib, site, tactic)
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
        shared_kib * 1024,
    )
    typer.echo(render_kernels(document, form), nl=False)
    return DONE if all(k.status == "ok" for k in document.kernels) else BUILD_FAILED


@app.command("check")
def check_model(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    target: _Targets = None,
    shape: _Shapes = None,
    precision: _Precision = "keep",
    shared_kib: _SharedKib = 47,
    site: _Sites = None,
    tactic: _Only = None,
    jobs: _Jobs = None,
    seed: Annotated[int, typer.Option(help="Of the random inputs.")] = 0,
    blocks: Annotated[
        int, typer.Option(min=2, help="Blocks run of each kernel, where its grid has more.")
    ] = 8,
    activations: Annotated[
        str,
        typer.Option(
            help="random, or model: ONNX Runtime runs the model, and each site's kernels get its "
            "own input and weights and must meet its output."
        ),
    ] = "random",
    form: _Form = Format.TEXT,
) -> int:
    """Run the kernels in the emulator: numbers against the reference, races, bounds, conflicts."""
    from trtplug.candidates.check import SCHEMA, ChecksDocument, check_tasks, checks_of
    from trtplug.candidates.compile import compile_tasks
    from trtplug.cli.kernel_progress import counting
    from trtplug.cli.kernel_tables import render_checks

    if activations not in ("random", "model"):
        raise UsageError(f"unknown activations {activations!r}", "random or model")
    job = _Job(model, target, shape, precision, shared_kib, site, tactic)
    given = _activations(job, seed, site) if activations == "model" else None
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
    typer.echo(render_checks(document, form), nl=False)
    return DONE if all(c.status == "passed" for c in checks) else GATE_FAILED


def _activations(job: _Job, seed: int, sites: Sequence[str] | None) -> dict[str, SiteTensors]:
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
        path: Path,
        targets: Sequence[str] | None,
        shapes: Sequence[str] | None,
        precision: str,
        shared_kib: int,
        sites: Sequence[str] | None,
        tactics: Sequence[str] | None,
    ) -> None:
        from trtplug.candidates.compile import list_tasks
        from trtplug.candidates.problems import PRECISIONS, read_problems
        from trtplug.tensor import parse_shape_range

        if precision not in PRECISIONS:
            raise UsageError(f"unknown precision {precision!r}", f"one of {', '.join(PRECISIONS)}")
        if not 1 <= shared_kib <= 48:
            raise UsageError(f"--shared-kib {shared_kib} is not between 1 and 48")
        _check_tactics(tactics or ())
        places = _places(targets or ())
        given = tuple(parse_shape_range(s) for s in shapes or ())
        read = read_problems(path, given, precision)
        self.model, self.unsized, self.sizes = read.model, read.unsized, read.sizes
        self.asked = _chosen(read.asked, sites or ())
        tasks, self.excluded = list_tasks(self.asked, places, shared_kib * 1024)
        self.tasks = tuple(t for t in tasks if not tactics or t.candidate.tactic.name in tactics)


def _check_tactics(names: Sequence[str]) -> None:
    from trtplug.tactics.catalog import find_tactic

    for name in names:
        if find_tactic(name) is None:
            raise UsageError(f"unknown tactic {name!r}", "`trtplug kernels list` lists them")


def _chosen(asked: tuple[Asked, ...], sites: Sequence[str]) -> tuple[Asked, ...]:
    known = {label for each in asked for label in each.sites}
    for name in sites:
        if name not in known:
            raise UsageError(f"the model has no site {name!r}", "`trtplug sites` lists them")
    return tuple(a for a in asked if not sites or set(a.sites) & set(sites))


def _places(targets: Sequence[str]) -> tuple[Place, ...]:
    """SM and profile of each target; the first profile of an SM stands for it."""
    from trtplug.backends.find import local_sm
    from trtplug.candidates.compile import Place
    from trtplug.kernels.usage import LIMITS
    from trtplug.plan.make import Builder, resolve_targets
    from trtplug.profile import bundled_folders, find_profile, load_profiles, profiles_of
    from trtplug.settings import read_settings
    from trtplug.target import Sm

    if not targets:
        raise UsageError(
            "no target was given", "add --target rtx4090, --target sm_89 or --target all"
        )
    profiles = load_profiles(bundled_folders(read_settings()))
    kernels = Builder(name="kernels", version="1", sms=tuple(Sm(n) for n in sorted(LIMITS)))
    places = []
    for sm, names in resolve_targets(tuple(targets), kernels, profiles, local_sm).items():
        named = find_profile(names[0], profiles) if names else None
        places.append(Place(sm=sm, profile=named or next(iter(profiles_of(sm, profiles)), None)))
    return tuple(places)


def _store() -> Store:
    from trtplug.settings import read_settings
    from trtplug.store import Store

    return Store(root=read_settings().store)


def _jobs(wanted: int | None) -> int:
    return wanted or len(os.sched_getaffinity(0))
