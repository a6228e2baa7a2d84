"""Which course each target of a command takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.cache_api import CachingBackend
from trtplug.passes.course import Course

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.backends.backend import Backend
    from trtplug.engine.lock import Lock
    from trtplug.engine.tactic_policy import TacticPolicy
    from trtplug.passes.cached import Caching
    from trtplug.plan.plan import Plan, PlannedTarget


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
    from trtplug.backends.machine import read_machine
    from trtplug.engine.cache_identity import CacheIdentity, implementation_flags
    from trtplug.engine.cache_reads import ReadOnce
    from trtplug.engine.timing_cache import TimingCacheStore
    from trtplug.passes.cached import UNKNOWN, Caching

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
        from trtplug.passes.replayed import ReplayedCourse

        return ReplayedCourse(
            target, folders, plan=plan, file=policy.locked, lock=lock, caching=caching
        )
    if caching is None:
        return Course(target, folders)
    if policy.wished:
        from trtplug.passes.tuned import TunedCourse

        return TunedCourse(target, folders, caching, policy.wishes)
    from trtplug.passes.cached import CachedCourse

    return CachedCourse(target, folders, caching)
