"""`--locked`: builds with the tactics of a lock, and compares inputs and results with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import Candidate, CandidateTable
from trtplug.build.strategy import BuilderRun, BuildStrategy, builder_refused
from trtplug.errors import CacheUnusableError, LockMismatchError
from trtplug.lock.check import (
    consistency_problems,
    replay_problems_after,
    replay_problems_before,
    require_replayed,
    require_same_digest,
)
from trtplug.lock.diff import input_differences
from trtplug.lock.lock import LOCK, Lock, read_lock
from trtplug.timing.files import CACHE, winners_of
from trtplug.timing.transfer import read_cache

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.context import BuildContext
    from trtplug.build.strategy import Caching
    from trtplug.errors import TrtplugError
    from trtplug.model.source import Source
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.report.candidates import Tactics
    from trtplug.report.data import Report
    from trtplug.timing.files import CacheEntry
    from trtplug.timing.store import Attached


def requested_lock(plan: Plan, target: PlannedTarget, lock: Lock, source: Source) -> Lock:
    """The lock with the inputs of the requested build in place of its own.

    The GPU stays: whether this machine qualifies was checked before.
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


def check_replay(context: BuildContext, plan: Plan) -> None:
    """Compares what would be built with the lock, as far as that needs no builder.

    Raises:
        LockMismatchError: something differs.
    """
    lock = context.lock
    if lock is None:
        return
    for target in plan.targets:
        requested = requested_lock(plan, target, lock, context.source)
        differences = map(str, input_differences(lock, requested))
        require_replayed(
            str(context.command.policy.locked), (*differences, *consistency_problems(lock))
        )


_BYPASS = "--locked: it is the lock's own"


class ReplayStrategy(BuildStrategy):
    """With the tactics of a lock, and no others."""

    def __init__(
        self,
        context: BuildContext,
        plan: Plan,
        target: PlannedTarget,
        folders: Sequence[Path],
        lock: Lock,
        caching: Caching | None,
    ) -> None:
        super().__init__(context, plan, target, folders, caching)
        self._lock = lock
        self._attached: Attached | None = None
        self._after: list[Mapping[str, str]] = []
        """Key -> tactic hash of the cache that each build left."""

    @property
    def _file(self) -> Path:
        """The lock's file."""
        file = self.context.command.policy.locked
        assert file is not None
        return file

    def check(self, source: Source) -> None:
        """Compares what goes in, and the lock's cache, before anything is built.

        Raises:
            LockMismatchError: something differs.
            CacheUnusableError: the lock's cache is damaged.
        """
        requested = requested_lock(self.plan, self.target, self._lock, source)
        if self._caching is None:
            problems = tuple(map(str, input_differences(self._lock, requested)))
        else:
            entry = read_cache(self._file.parent / CACHE)
            self._attached = _attached(self._caching, entry, self._file.parent / CACHE)
            before = self._attached.before
            problems = replay_problems_before(self._lock, requested, before, entry.sidecar)
        require_replayed(str(self._file), problems)

    def first_runs(self) -> tuple[BuilderRun, ...]:
        """The builds, from the lock's cache alone."""
        if self._caching is None or self._attached is None:
            return super().first_runs()
        file = self._caching.for_child(self._attached, self.target)
        return tuple(
            BuilderRun(folder=f, timing_cache=file, strict_cache=True) for f in self.folders
        )

    def explain_failure(self, outcome: Outcome) -> TrtplugError | None:
        """A builder that misses a tactic in the cache fails, and says which."""
        if self._caching is None or not builder_refused(outcome):
            return None
        words = (f"the builder did not build from its cache alone: {r}" for r in outcome.reasons)
        return LockMismatchError(path=str(self._file), differences=tuple(words))

    def collect_tactics(self, outcomes: Sequence[Outcome]) -> Tactics | None:
        """Those of the lock; each build's cache stays in its folder."""
        from trtplug.report.candidates import Tactics

        if self._caching is None or self._attached is None:
            return None
        folders = [Path(o.folder) for o in outcomes]
        published = [self._caching.publish(self._attached, f, _BYPASS) for f in folders]
        self._after = [self._caching.winners(folder) for folder in folders]
        return Tactics(
            cache=published[0],
            tables=lock_tables(self._lock, self.context.source.prepared.names),
            overridden_by={t.key: t.asked_by for t in self._lock.tactics or () if t.asked_by},
            locked=True,
        )

    def check_report(self, report: Report) -> None:  # noqa: ARG002
        """Compares the new lock and all caches with the lock.

        Raises:
            LockMismatchError: anything differs.
        """
        lock = read_lock(self.folders[0] / LOCK)
        for winners in self._after:
            problems = replay_problems_after(self._lock, lock, winners)
            require_replayed(str(self._file), problems)
        if self._lock.tactics is None:
            require_same_digest(str(self._file), self._lock, lock)

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
