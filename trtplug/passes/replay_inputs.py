"""What goes into a build that is to replay a lock, in the lock's own terms. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trtplug.engine.lock import Lock
    from trtplug.model.source import Source
    from trtplug.plan.plan import Plan, PlannedTarget


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
