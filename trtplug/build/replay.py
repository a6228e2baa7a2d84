"""What goes into a build that is to replay a lock, in the lock's own terms. Pure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import Candidate, CandidateTable
from trtplug.build.strategy import Course, Pass, builder_refused
from trtplug.errors import CacheUnusableError, LockMismatchError
from trtplug.lock.check import (
    replay_problems_after,
    replay_problems_before,
    require_replayed,
    require_same_digest,
)
from trtplug.lock.diff import input_differences
from trtplug.lock.lock import LOCK, Lock, read_lock
from trtplug.timing.files import CACHE, winners_of
from trtplug.timing.transfer import read_cache, write_cache_for_child

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.context import Ground
    from trtplug.build.with_cache import Caching
    from trtplug.bundle.manifest import Agreement, ManifestTarget
    from trtplug.errors import TrtplugError
    from trtplug.model.source import Source
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.report.data import Report
    from trtplug.timing.files import CacheEntry
    from trtplug.timing.store import Attached


def asked_lock(plan: Plan, target: PlannedTarget, lock: Lock, source: Source) -> Lock:
    """The lock with the inputs of the build that was asked for in place of its own.

    The GPU is left: whether this machine qualifies was asked before.
    """
    return replace(
        lock,
        model=replace(lock.model, sha256=plan.model_sha256),
        target=target.target,
        backend=plan.backend,
        backend_version=plan.backend_version,
        shapes=tuple(map(str, source.ranges)),
        precision=plan.precision,
        flags=plan.flags,
    )


_APART = "--locked: it is the lock's own"


class ReplayedCourse(Course):
    """With the tactics of a lock, and no others."""

    def __init__(
        self,
        target: PlannedTarget,
        folders: Sequence[Path],
        *,
        plan: Plan,
        file: Path,
        lock: Lock,
        caching: Caching | None,
    ) -> None:
        super().__init__(target, folders)
        self._plan, self._file, self._lock, self._caching = plan, file, lock, caching
        self._attached: Attached | None = None

    def read(self, source: Source) -> None:
        """Compares what goes in, and the lock's cache, before anything is built.

        Raises:
            LockMismatchError: something differs.
            CacheUnusableError: the lock's cache is damaged.
        """
        asked = asked_lock(self._plan, self.target, self._lock, source)
        if self._caching is None:
            problems = tuple(map(str, input_differences(self._lock, asked)))
        else:
            entry = read_cache(self._file.parent / CACHE)
            self._attached = _attached(self._caching, entry, self._file.parent / CACHE)
            before = self._attached.before
            problems = replay_problems_before(self._lock, asked, before, entry.sidecar)
        require_replayed(str(self._file), problems)

    def opening(self) -> tuple[Pass, ...]:
        """The builds, from the lock's cache alone."""
        if self._caching is None or self._attached is None:
            return super().opening()
        file = write_cache_for_child(self._attached, self._caching.work / f"{self.target.sm}.cache")
        return tuple(
            Pass(target=self.target, folder=f, timing_cache=file, strict_cache=True)
            for f in self.folders
        )

    def why_failed(self, outcome: Outcome) -> TrtplugError | None:
        """A builder that misses a tactic in the cache fails, and says which."""
        if self._caching is None or not builder_refused(outcome):
            return None
        words = (f"the builder did not build from its cache alone: {r}" for r in outcome.reasons)
        return LockMismatchError(path=str(self._file), differences=tuple(words))

    def finish(
        self, ground: Ground, outcomes: Sequence[Outcome], agreement: Agreement | None
    ) -> tuple[ManifestTarget, Report]:
        """Makes the files, and holds them against the lock.

        Raises:
            LockMismatchError: anything differs.
        """
        from trtplug.build.finish import produce_target
        from trtplug.report.candidates import Tactics

        after, tactics = [], Tactics()
        if self._caching is not None and self._attached is not None:
            folders = [Path(o.folder) for o in outcomes]
            taken = [self._caching.take(self._attached, f, _APART) for f in folders]
            after = [_winners(self._caching, folder) for folder in folders]
            tactics = Tactics(
                cache=taken[0],
                tables=lock_tables(self._lock, ground.prepared.names),
                asked_by={t.key: t.asked_by for t in self._lock.tactics or () if t.asked_by},
                locked=True,
            )
        made, report = produce_target(ground, self.target, outcomes[0], agreement, tactics)
        lock = read_lock(ground.folder / self.target.sm / LOCK)
        for winners in after:
            problems = replay_problems_after(self._lock, lock, winners)
            require_replayed(str(self._file), problems)
        if self._lock.tactics is None:
            require_same_digest(str(self._file), self._lock, lock)
        return made, report

    def keeps(self, report: Report) -> bool:  # noqa: ARG002
        """No: a build without the lock is to find what it would make itself."""
        return False


def _attached(caching: Caching, entry: CacheEntry, file: Path) -> Attached:
    """The lock's own cache, as TensorRT reads it.

    Raises:
        CacheUnusableError: it is damaged, or TensorRT does not take it.
    """
    import dataclasses

    values = caching.api.read(entry.blob)
    if values is None:
        raise CacheUnusableError(path=str(file), problem="TensorRT does not take it")
    return dataclasses.replace(caching.empty(), blob=entry.blob, before=winners_of(values))


def _winners(caching: Caching, folder: Path) -> Mapping[str, str]:
    """Key -> tactic hash of the cache that a build left; empty where it left none."""
    file = folder / CACHE
    values = caching.api.read(file.read_bytes()) if file.is_file() else None
    return winners_of(values) if values is not None else {}


def lock_tables(lock: Lock, labels: Mapping[str, str]) -> tuple[CandidateTable, ...]:
    """The lock's tactics as tables of one candidate each, so that layers find their keys again.

    Args:
        lock: that is replayed.
        labels: the builder's name of an ONNX node -> its label, which is what a lock has.
    """
    builders = {label: name for name, label in labels.items()}
    return tuple(
        CandidateTable(
            op=tactic.op,
            key=tactic.key,
            onnx_layers=tuple(builders.get(n, n) for n in tactic.onnx_nodes),
            candidates=(_candidate(tactic.kernel, tactic.tactic_hash),),
            selected=tactic.tactic_hash,
            selected_ms=None,
            written=None,
            complete=True,
        )
        for tactic in lock.tactics or ()
        if tactic.op is not None and tactic.kernel is not None
    )


def _candidate(kernel: str, tactic_hash: str) -> Candidate:
    return Candidate(
        tactic_id=None,
        cost_ms=None,
        ratio=None,
        correlation=None,
        kernel=kernel,
        tactic_hash=tactic_hash,
        parameter="",
    )
