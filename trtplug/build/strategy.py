"""How one target is built: which passes it has, and how its files are made of them.

A builder without timing caches takes `Course` itself: each build is one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.cache_api import CachingBackend
from trtplug.plan import PlannedTarget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Backend, Outcome
    from trtplug.build.context import Ground
    from trtplug.build.with_cache import Caching
    from trtplug.bundle.manifest import Agreement, ManifestTarget
    from trtplug.errors import TrtplugError
    from trtplug.lock.lock import Lock
    from trtplug.lock.policy import TacticPolicy
    from trtplug.model.source import Source
    from trtplug.plan import Plan
    from trtplug.report.data import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One run of the builder for a target."""

    target: PlannedTarget
    folder: Path
    """Of its own, for all that the builder leaves."""
    timing_cache: Path | None = None
    """To begin with; None begins with an empty one."""
    strict_cache: bool = False
    """Whether a tactic that the cache lacks ends the build."""
    record: bool = False
    """Whether only what is learned about tactics counts."""
    name: str = ""
    """For people; empty where a build has one pass."""
    number: int = 1
    of: int = 1


class Course:
    """One pass for each build, from an empty cache."""

    def __init__(self, target: PlannedTarget, folders: Sequence[Path]) -> None:
        self.target = target
        self.folders = tuple(folders)
        """One for each build; the first is the target's own in the bundle."""
        self.expects = len(self.folders)
        """Passes whose outcomes are to be waited for."""

    def opening(self) -> tuple[Pass, ...]:
        """The passes to begin with."""
        return tuple(Pass(target=self.target, folder=folder) for folder in self.folders)

    def read(self, source: Source) -> None:
        """Hears of the model as it will be built, before any pass begins that is not `ahead`.

        Raises:
            TrtplugError: it must not be built so.
        """

    def following(self, ground: Ground, outcome: Outcome) -> tuple[Pass, ...] | None:
        """What is to be done after a pass that only records; None after one that builds.

        Raises:
            TrtplugError: what was asked for cannot be had.
        """

    def why_failed(self, outcome: Outcome) -> TrtplugError | None:
        """What a failed pass means here; None where the builder's own words say it all."""

    def finish(
        self, ground: Ground, outcomes: Sequence[Outcome], agreement: Agreement | None
    ) -> tuple[ManifestTarget, Report]:
        """Makes the target's files, once all builds have ended well; the first one ships.

        Raises:
            TrtplugError: what was built is not what was asked for.
        """
        from trtplug.build.finish import produce_target

        return produce_target(ground, self.target, outcomes[0], agreement)

    def keeps(self, report: Report) -> bool:  # noqa: ARG002
        """Whether the store of engines may have what was made."""
        return True


def builder_refused(outcome: Outcome) -> bool:
    """Whether the builder itself gave no engine; one that it gave may have failed its trial run."""
    return outcome.status == "failed" and not outcome.engine_sha256


def make_caching(
    backend: Backend, policy: TacticPolicy, plan: Plan, store: Path, work: Path
) -> Caching | None:
    """The builder's timing caches on this machine; None for a builder that has none.

    Args:
        backend: that builds.
        policy: as asked for.
        plan: of the command.
        store: folder of the store of timing caches.
        work: folder for what builders are given.
    """
    if not isinstance(backend, CachingBackend):
        return None
    from trtplug.backends.find import read_machine
    from trtplug.build.with_cache import UNKNOWN, Caching
    from trtplug.timing.identity import CacheIdentity, implementation_flags
    from trtplug.timing.store import ReadOnce, TimingCacheStore

    machine = read_machine()
    gpu = machine.gpus[0]  # the one that builders take
    identity = CacheIdentity(
        gpu=gpu.name,
        sm=str(gpu.sm),
        driver=machine.driver or UNKNOWN,
        cuda=machine.cuda or UNKNOWN,
        builder=plan.backend_version,
        flags=implementation_flags(plan.flags),
    )
    return Caching(
        api=ReadOnce(backend.timing_caches()),
        store=TimingCacheStore(root=store),
        identity=identity,
        use=policy.cache,
        work=work,
        model_sha256=plan.model_sha256,
    )


def choose_course(
    target: PlannedTarget,
    folders: Sequence[Path],
    *,
    plan: Plan,
    policy: TacticPolicy,
    lock: Lock | None,
    caching: Caching | None,
) -> Course:
    """The course of one target.

    Raises:
        OutputError: the store of timing caches cannot be written.
    """
    if lock is not None and policy.locked is not None:
        from trtplug.build.replay import ReplayedCourse

        return ReplayedCourse(
            target, folders, plan=plan, file=policy.locked, lock=lock, caching=caching
        )
    if caching is None:
        return Course(target, folders)
    if policy.wished:
        from trtplug.build.two_pass import TunedCourse

        return TunedCourse(target, folders, caching, policy.wishes)
    from trtplug.build.with_cache import CachedCourse

    return CachedCourse(target, folders, caching)
