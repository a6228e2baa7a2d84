"""What a builder's process is asked for each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.backend import BuildRequest, InputRange
from trtplug.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trtplug.backends.backend import Event
    from trtplug.builds.job import Job
    from trtplug.model.source import Source
    from trtplug.offer.for_build import Offers
    from trtplug.passes.course import Pass
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
