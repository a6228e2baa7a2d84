"""One pass for each build, from the timing cache that the store has for this machine."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.cache_api import TimingCacheApi
from trtplug.build.strategy import Course, Pass
from trtplug.errors import OutputError
from trtplug.lock.policy import CacheUse
from trtplug.timing.accounting import require_cache_problem
from trtplug.timing.identity import CacheIdentity
from trtplug.timing.store import Attached, TimingCacheStore
from trtplug.timing.transfer import publish_cache, write_cache_for_child

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.context import Ground
    from trtplug.bundle.manifest import Agreement, ManifestTarget
    from trtplug.plan import PlannedTarget
    from trtplug.report.data import Report
    from trtplug.timing.store import CacheOutcome

_log = logging.getLogger(__name__)


UNKNOWN = "unknown"
"""Stands for a driver or CUDA version that nothing here tells; no lock with it ever qualifies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """A builder's timing caches on this machine, for one command."""

    api: TimingCacheApi
    store: TimingCacheStore
    identity: CacheIdentity
    use: CacheUse
    work: Path
    """A folder for what builders are given."""
    model_sha256: str

    @property
    def bypass_reason(self) -> str:
        """Why the store is left alone; empty where it is used."""
        if self.use == "fresh":
            return "--no-timing-cache"
        if UNKNOWN in (self.identity.driver, self.identity.cuda):
            return "the driver does not tell its version, so no cache is certain to fit it"
        return ""

    def attach(self) -> Attached:
        """What the store has; an empty cache where it is left alone."""
        if self.bypass_reason:
            _log.info("no timing cache is attached: %s", self.bypass_reason)
            return self.empty()
        return self.store.attach(self.identity, self.api)

    def empty(self) -> Attached:
        """An empty cache to begin with."""
        return Attached(identity=self.identity, blob=None, before={}, rejected="", quarantined=None)

    def take(
        self, attached: Attached, folder: Path, bypass_reason: str = ""
    ) -> CacheOutcome | None:
        """Takes in the cache that a pass left in its folder.

        A store that cannot be written costs later builds their time, and this one nothing.

        Args:
            attached: what the pass began with.
            folder: of the pass.
            bypass_reason: why no other build is to have it; empty where the store may.

        Raises:
            OutputError: the folder cannot be written.
        """
        if why := bypass_reason or self.bypass_reason:
            _log.info("the build's timing cache is not published: %s", why)
            return self._take(None, attached, folder, why)
        try:
            return self._take(self.store, attached, folder)
        except OutputError as error:
            why = f"the store cannot be written: {error.problem}"
            _log.info("the build's timing cache is not published: %s", why)
            return self._take(None, attached, folder, why)

    def _take(
        self, store: TimingCacheStore | None, attached: Attached, folder: Path, why: str = ""
    ) -> CacheOutcome | None:
        return publish_cache(
            store, attached, self.api, folder, model_sha256=self.model_sha256, bypass_reason=why
        )


class CachedCourse(Course):
    """All builds of a target begin with the same cache, so that repeated ones can be compared."""

    def __init__(self, target: PlannedTarget, folders: Sequence[Path], caching: Caching) -> None:
        super().__init__(target, folders)
        self.caching = caching
        self.attached = caching.attach()

    def opening(self) -> tuple[Pass, ...]:
        """The passes to begin with."""
        file = write_cache_for_child(self.attached, self.caching.work / f"{self.target.sm}.cache")
        return tuple(
            Pass(target=self.target, folder=folder, timing_cache=file) for folder in self.folders
        )

    def finish(
        self, ground: Ground, outcomes: Sequence[Outcome], agreement: Agreement | None
    ) -> tuple[ManifestTarget, Report]:
        """Publishes each build's cache, and makes the files."""
        from trtplug.build.finish import produce_target
        from trtplug.report.candidates import Tactics

        taken = [self.caching.take(self.attached, Path(o.folder)) for o in outcomes]
        tactics = Tactics(cache=taken[0])
        return produce_target(ground, self.target, outcomes[0], agreement, tactics)

    def keeps(self, report: Report) -> bool:
        """Where a hit is required, nothing else is kept: a later build is to try again."""
        return self.caching.use != "require" or not gate_problem(report)


def gate_problem(report: Report) -> str:
    """Why `--require-cache` is not met; empty where it is."""
    cache = report.timing_cache
    if cache is None:
        return "the build left no timing cache"
    return require_cache_problem(cache.word, cache.reason)
