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
from trtplug.engine.lock import Lock
from trtplug.engine.tactic_policy import TacticPolicy
from trtplug.errors import (
    LockMismatchError,
    OutputError,
    TacticUnavailableError,
    TrtplugError,
)
from trtplug.offer.for_build import PluginJob
from trtplug.passes.choose import choose_course, make_caching
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
    from trtplug.passes.course import Course, Pass
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
    timing_caches: Path
    """The store of timing caches."""
    policy: TacticPolicy
    lock: Lock | None
    """To be replayed."""
    plugins: PluginJob | None = None
    """None where the backend takes none."""


def build_misses(
    job: Job, targets: tuple[PlannedTarget, ...], on_event: Callable[[str, Event], None]
) -> Iterator[Result]:
    """Results in the order in which the targets end.

    Raises:
        TrtplugError: the model or the shapes cannot be used, or the tactics asked for cannot be
            had, for any target.
    """
    # On the GPU at hand one at a time: two at once would time each other's kernels.
    jobs = 1 if job.backend.capabilities().needs_gpu else job.jobs
    command, passed_on = job.backend.child_command(), job.backend.passed_on()
    with Children(command, jobs, job.limits, passed_on) as children:
        courses = _courses(job, targets)
        source, offers = _start(job, children, courses, on_event)
        # Where builds wait for one another, no processor is free before the first has ended.
        ground = None
        if len(targets) * job.plan.repeat <= jobs:
            ground = _ground(job, source, offers)
        ended: dict[str, list[Outcome]] = defaultdict(list)
        for outcome in children.outcomes(on_event):
            ground = ground or _ground(job, source, offers)
            course = courses[outcome.target]
            passes = course.following(ground, outcome) if outcome.status == "built" else None
            if passes is not None:
                mended = _mended_of(job, source)
                children.submit(_requests(job, passes, mended, offers, on_event))
                continue
            ended[outcome.target].append(outcome)
            if len(ended[outcome.target]) == course.expects:
                yield _result(job, ground, course, ended[outcome.target])
    shutil.rmtree(job.folder / _WORK, ignore_errors=True)


def _courses(job: Job, targets: tuple[PlannedTarget, ...]) -> dict[str, Course]:
    """Each target's course, with one folder for each build: its own in the bundle, and others."""
    work = job.folder / _WORK
    with as_output_error(job.folder):
        work.mkdir()
        caching = make_caching(job.backend, job.policy, job.plan, job.timing_caches, work)
        found = {}
        for target in targets:
            more = (work / f"{target.sm}-{n}" for n in range(1, job.plan.repeat))
            folders = (job.folder / target.sm, *more)
            for folder in folders:
                folder.mkdir(exist_ok=True)
            found[target.target] = choose_course(
                target, folders, plan=job.plan, policy=job.policy, lock=job.lock, caching=caching
            )
    return found


def _start(
    job: Job,
    children: Children,
    courses: dict[str, Course],
    on_event: Callable[[str, Event], None],
) -> tuple[Source, Offers]:
    """Has the builds run while the model is checked here; what the checks say comes first.

    A builder that was given a bad model is ended, whatever it did with it.
    """

    def submit(mended: Path | None, offers: Offers) -> None:
        for course in courses.values():
            children.submit(_requests(job, course.opening(), mended, offers, on_event))

    if job.ahead:
        submit(None, {})
    else:
        children.warm(len(courses) * job.plan.repeat)
    source = _read(job)
    for course in courses.values():
        course.read(source)
    mended = _mended_of(job, source)
    offers = _offers(job, source, [c.target for c in courses.values()], on_event)
    if job.ahead and mended is not None:
        children.withdraw()
    if mended is not None or not job.ahead:
        submit(mended, offers)
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
    if not job.plugins.may_choose:
        return job.plugins.choices(source, targets)
    return job.plugins.offers(source, targets, job.folder, job.folder / _WORK, on_event)


def _mended_of(job: Job, source: Source) -> Path | None:
    """The mended copy of the model; None where the file itself will do."""
    return _mended(job) if source.prepared.data is not None else None


def _requests(
    job: Job,
    passes: tuple[Pass, ...],
    mended: Path | None,
    offers: Offers,
    on_event: Callable[[str, Event], None],
) -> Iterator[BuildRequest]:
    """What the builder is asked; says so first where a build has several passes."""
    for number, each in enumerate(passes):
        if each.name and number == 0:
            told = {"name": each.name, "number": each.number, "of": each.of}
            on_event(each.target.target, {"event": "pass", **told})
        yield _request(job, each, mended, offers)


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


def _request(job: Job, each: Pass, mended: Path | None, offers: Offers) -> BuildRequest:
    offer = offers.get(each.target.target)
    data = (offer.model if offer is not None else None) or mended
    return BuildRequest(
        target=each.target.target,
        sm=parse_target(each.target.target).sm.number,
        # A link is not followed: external data lies beside the name that was given.
        model=str(job.model.parent.resolve() / job.model.name),
        data=str(data) if data is not None else None,
        plugin_kit=str(offer.kit) if offer is not None and offer.kit is not None else None,
        ranges=_input_ranges(job.ranges),
        more_profiles=tuple(map(_input_ranges, job.more_profiles)),
        options=job.options,
        timing_cache=str(each.timing_cache) if each.timing_cache is not None else None,
        strict_cache=each.strict_cache,
        record=each.record,
        folder=str(each.folder),
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


def _result(job: Job, ground: Ground, course: Course, outcomes: list[Outcome]) -> Result:
    from trtplug.engine.failure import failure_of
    from trtplug.result import Result

    planned = course.target
    failed = next((o for o in outcomes if o.status != "built"), None)
    place = job.folder / planned.sm
    if failed is not None:
        if failed.status == "unwritable":
            raise OutputError(path=job.plan.out, problem="; ".join(failed.reasons))
        if (meant := course.why_failed(failed)) is not None:
            raise meant
        _keep_the_logs_only(place)
        limits = job.limits
        error = failure_of(failed, timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes)
        return Result(target=planned, error=error)
    ordered = sorted(outcomes, key=lambda o: o.folder != str(place))
    try:
        made, report = course.finish(ground, ordered, _agreement(outcomes))
    except (LockMismatchError, TacticUnavailableError):
        raise
    except TrtplugError as error:
        _keep_the_logs_only(place)
        return Result(target=planned, error=error)
    if course.keeps(report):
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
