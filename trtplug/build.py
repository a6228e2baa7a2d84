"""Builds what the store does not have: children build while the model's facts are worked out.

What is needed once builds end is imported then: the builders' processes start before it loads.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend, BuildRequest, InputRange
from trtplug.backends.options import BuildOptions
from trtplug.backends.worker import Children, Limits
from trtplug.errors import OutputError, TrtplugError
from trtplug.offer.for_build import PluginJob
from trtplug.plan.plan import Plan, PlannedTarget
from trtplug.precision import PrecisionWish
from trtplug.profile import GpuProfile
from trtplug.scratch import as_output_error
from trtplug.store import Store
from trtplug.target import parse_target
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.backends.backend import Event, Outcome
    from trtplug.engine.manifest import Agreement, ManifestTarget
    from trtplug.model.source import Source
    from trtplug.offer.for_build import Offers
    from trtplug.offer.offer import PluginOffer
    from trtplug.produce import Ground
    from trtplug.result import Result

_MENDED = "model.onnx"

_WORK = ".work"
"""Below the bundle under way: what builders need and no bundle holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all builds of one command have in common."""

    model: Path
    ranges: tuple[ShapeRange, ...]
    """As given on the command line."""
    more_profiles: tuple[tuple[ShapeRange, ...], ...]
    precision: PrecisionWish
    options: BuildOptions
    limits: Limits
    jobs: int
    backend: Backend
    profiles: tuple[GpuProfile, ...]
    store: Store
    plan: Plan
    ahead: bool
    """Whether builds may start while the model is still being checked here."""
    folder: Path
    """The bundle under way."""
    plugins: PluginJob | None = None
    """None where the backend takes none."""


def build_misses(
    job: Job, targets: tuple[PlannedTarget, ...], on_event: Callable[[str, Event], None]
) -> Iterator[Result]:
    """Results in the order in which the targets end.

    Raises:
        TrtplugError: the model or the shapes cannot be used, for any target.
    """
    repeat = job.plan.repeat
    # On the GPU at hand one at a time: two at once would time each other's kernels.
    jobs = 1 if job.backend.capabilities().needs_gpu else job.jobs
    command, passed_on = job.backend.child_command(), job.backend.passed_on()
    with Children(command, jobs, job.limits, passed_on) as children:
        folders = _folders(job, targets, repeat)
        source, offers = _start(job, children, folders, on_event)
        # Where builds wait for one another, no processor is free before the first has ended.
        ground = _ground(job, source, offers) if len(folders) <= jobs else None
        ended: dict[str, list[Outcome]] = defaultdict(list)
        planned = {t.target: t for t in targets}
        for outcome in children.outcomes(on_event):
            ground = ground or _ground(job, source, offers)
            ended[outcome.target].append(outcome)
            if len(ended[outcome.target]) == repeat:
                yield _result(job, ground, planned[outcome.target], ended[outcome.target])
    shutil.rmtree(job.folder / _WORK, ignore_errors=True)


def _start(
    job: Job,
    children: Children,
    folders: list[tuple[PlannedTarget, Path]],
    on_event: Callable[[str, Event], None],
) -> tuple[Source, Offers]:
    """Has the builds run while the model is checked here; what the checks say comes first.

    A builder that was given a bad model is ended, whatever it did with it.
    """
    if job.ahead:
        children.submit(_request(job, t, folder, None) for t, folder in folders)
    else:
        children.warm(len(folders))
    source = _read(job)
    mended = _mended(job) if source.prepared.data is not None else None
    offers = _offers(job, source, [t for t, _ in folders], on_event)
    if job.ahead and mended is not None:
        children.withdraw()
    if mended is not None or not job.ahead:
        children.submit(_request(job, t, f, mended, offers.get(t.target)) for t, f in folders)
    return source, offers


def _offers(
    job: Job,
    source: Source,
    targets: list[PlannedTarget],
    on_event: Callable[[str, Event], None],
) -> Offers:
    """What each builder is offered beside the model; choices alone where no plugin is among it."""
    if job.plugins is None:
        return {}
    once = {t.target: t for t in targets}.values()
    if not job.plugins.may_choose:
        return job.plugins.choices(source, once)
    return job.plugins.offers(source, once, job.folder, job.folder / _WORK, on_event)


def _mended(job: Job) -> Path:
    return job.folder / _WORK / _MENDED


def _read(job: Job) -> Source:
    from trtplug.model.source import read_source

    source = read_source(
        job.model, job.plan.model_sha256, job.ranges, job.precision, job.more_profiles
    )
    with as_output_error(job.folder):
        if source.prepared.data is not None:
            _mended(job).write_bytes(source.prepared.data)
    return source


def _folders(
    job: Job, targets: tuple[PlannedTarget, ...], repeat: int
) -> list[tuple[PlannedTarget, Path]]:
    """One folder for each build: that of the target in the bundle, and others to compare with."""
    with as_output_error(job.folder):
        (job.folder / _WORK).mkdir()
        folders = [
            (t, job.folder / _WORK / f"{t.sm}-{n}" if n else job.folder / t.sm)
            for t in targets
            for n in range(repeat)
        ]
        for _, folder in folders:
            folder.mkdir(exist_ok=True)
    return folders


def _request(
    job: Job,
    target: PlannedTarget,
    folder: Path,
    mended: Path | None,
    offer: PluginOffer | None = None,
) -> BuildRequest:
    data = (offer.model if offer is not None else None) or mended
    return BuildRequest(
        target=target.target,
        sm=parse_target(target.target).sm.number,
        # A link is not followed: external data lies beside the name that was given.
        model=str(job.model.parent.resolve() / job.model.name),
        data=str(data) if data is not None else None,
        plugin_kit=str(offer.kit) if offer is not None and offer.kit is not None else None,
        ranges=_input_ranges(job.ranges),
        more_profiles=tuple(map(_input_ranges, job.more_profiles)),
        options=job.options,
        folder=str(folder),
        # What times kernels keeps its log in full: a second try would tell nothing more.
        verbose=not job.backend.capabilities().reproducible,
    )


def _input_ranges(ranges: tuple[ShapeRange, ...]) -> tuple[InputRange, ...]:
    return tuple(InputRange(name=r.name, min=r.min, opt=r.opt, max=r.max) for r in ranges)


def _ground(job: Job, source: Source, offers: Offers) -> Ground:
    from trtplug.model.validate import model_warnings
    from trtplug.produce import Ground
    from trtplug.report.model_facts import gather_facts
    from trtplug.report.to_html import load_page
    from trtplug.report.to_text import load_console

    facts = gather_facts(source.model, source.ranges)
    oddities = model_warnings(source.model)
    # Now, while there is nothing to do but wait for the builders.
    load_page()
    load_console()
    return Ground(
        plan=job.plan,
        facts=facts,
        oddities=oddities,
        prepared=source.prepared,
        islands=source.islands,
        profiles=job.profiles,
        folder=job.folder,
        reproducible=job.backend.capabilities().reproducible,
        place=job.backend.place(),
        offers=offers,
    )


def _result(job: Job, ground: Ground, planned: PlannedTarget, outcomes: list[Outcome]) -> Result:
    from trtplug.engine.failure import failure_of
    from trtplug.produce import produce_target
    from trtplug.result import Result

    failed = next((o for o in outcomes if o.status != "built"), None)
    place = job.folder / planned.sm
    if failed is not None:
        if failed.status == "unwritable":
            raise OutputError(path=job.plan.out, problem="; ".join(failed.reasons))
        _keep_the_logs_only(place)
        limits = job.limits
        error = failure_of(failed, timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes)
        return Result(target=planned, error=error)
    try:
        first = next(o for o in outcomes if o.folder == str(place))
        made, report = produce_target(ground, planned, first, _agreement(outcomes))
    except TrtplugError as error:
        _keep_the_logs_only(place)
        return Result(target=planned, error=error)
    _store(job, planned, made)
    return Result(target=planned, made=made, report=report)


def _keep_the_logs_only(place: Path) -> None:
    """Takes away what a target that failed has left; the manifest lists its logs alone."""
    from trtplug.result import LOGS

    for file in place.iterdir():
        if file.name not in LOGS:
            file.unlink()


def _agreement(outcomes: list[Outcome]) -> Agreement | None:
    """How far repeated builds agree; taken before the first engine gets its name."""
    if len(outcomes) == 1:
        return None
    from trtplug.engine.artifact import canonical_sha256
    from trtplug.engine.manifest import Agreement

    canonical = {canonical_sha256(Path(o.folder) / "engine") for o in outcomes}
    return Agreement(
        builds=len(outcomes),
        same_bytes=len({o.engine_sha256 for o in outcomes}) == 1,
        same_canonical=len(canonical) == 1,
    )


def _store(job: Job, planned: PlannedTarget, made: ManifestTarget) -> None:
    """Keeps the result for the next build; a store that cannot be written costs time, no more."""
    from trtplug.engine.entry import put_entry

    if made.backend_version != job.plan.backend_version:
        return
    try:
        known = {f.path.rpartition("/")[2]: f.sha256 for f in made.files}
        with job.store.publishing(planned.key, {"target": planned.target}, known) as entry:
            put_entry(job.folder, made, entry)
    except (OutputError, OSError):
        return
