"""What a builder's process is asked for each pass."""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

from trtplug.backends.request import BuildRequest, InputRange
from trtplug.backends.run_child import Children
from trtplug.build.outcomes import result_of
from trtplug.build.strategy import choose_course, make_caching
from trtplug.store import as_output_error
from trtplug.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtplug.backends.backend import Outcome
    from trtplug.backends.request import Event
    from trtplug.build.context import Ground, Job
    from trtplug.build.outcomes import Result
    from trtplug.build.strategy import Course, Pass
    from trtplug.model.source import Source
    from trtplug.plan import PlannedTarget
    from trtplug.plugin.job import Offers
    from trtplug.tensor import ShapeRange


def mended_of(job: Job, source: Source) -> Path | None:
    """The mended copy of the model; None where the file itself will do."""
    return job.mended if source.prepared.data is not None else None


def requests_of(
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
                mended = mended_of(job, source)
                children.submit(requests_of(job, passes, mended, offers, on_event))
                continue
            ended[outcome.target].append(outcome)
            if len(ended[outcome.target]) == course.expects:
                yield result_of(job, ground, course, ended[outcome.target])
    shutil.rmtree(job.work, ignore_errors=True)


def _courses(job: Job, targets: tuple[PlannedTarget, ...]) -> dict[str, Course]:
    """Each target's course, with one folder for each build: its own in the bundle, and others."""
    work = job.work
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
            children.submit(requests_of(job, course.opening(), mended, offers, on_event))

    if job.ahead:
        submit(None, {})
    else:
        children.warm(len(courses) * job.plan.repeat)
    source = _read(job)
    for course in courses.values():
        course.read(source)
    mended = mended_of(job, source)
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
    return job.plugins.offers(source, targets, job.folder, job.work, on_event)


def _read(job: Job) -> Source:
    from trtplug.model.source import read_source

    source = read_source(
        job.model, job.plan.model_sha256, job.ranges, job.precision, job.more_profiles
    )
    with as_output_error(job.folder):
        if source.prepared.data is not None:
            job.mended.write_bytes(source.prepared.data)
    return source


def _ground(job: Job, source: Source, offers: Offers) -> Ground:
    from trtplug.build.context import Ground
    from trtplug.model.validate import model_warnings
    from trtplug.report.html import load_page
    from trtplug.report.model_facts import gather_facts
    from trtplug.report.text import load_console

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
        place=job.backend.device_fingerprint(),
        offers=offers,
    )
