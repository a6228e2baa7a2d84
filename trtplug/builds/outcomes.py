"""What became of a target's builds: its files, or why there are none."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import (
    LockMismatchError,
    OutputError,
    TacticUnavailableError,
    TrtplugError,
)

if TYPE_CHECKING:
    from trtplug.backends.backend import Outcome
    from trtplug.builds.job import Job
    from trtplug.engine.manifest import Agreement, ManifestTarget
    from trtplug.passes.course import Course
    from trtplug.plan.plan import PlannedTarget
    from trtplug.produce.ground import Ground
    from trtplug.result import Result


def result_of(job: Job, ground: Ground, course: Course, outcomes: list[Outcome]) -> Result:
    """What a target's builds come to; a failure is a value, so that other targets go on.

    Raises:
        TrtplugError: a reason that ends the whole command.
    """
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
    known = {f.path.rpartition("/")[2]: f.sha256 for f in made.files}
    job.store.keep(
        planned.key, {"target": planned.target}, partial(put_entry, job.folder, made), known
    )
