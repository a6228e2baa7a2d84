"""The lock of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trtplug
from trtplug.engine.lock import CACHE, Lock, LockCache
from trtplug.engine.lock import SCHEMA as LOCK_SCHEMA
from trtplug.engine.manifest import (
    ManifestEngine,
    ManifestModel,
)
from trtplug.report.lock_parts import lock_gpu, lock_layers, lock_sites, lock_tactics

if TYPE_CHECKING:
    from trtplug.backends.backend import Outcome
    from trtplug.engine.cache_files import CacheEntry
    from trtplug.plan.plan import PlannedTarget
    from trtplug.produce.ground import Ground
    from trtplug.report.report import Report
    from trtplug.report.tactics import Tactics


def make_lock(
    ground: Ground,
    planned: PlannedTarget,
    outcome: Outcome,
    report: Report,
    shapes: tuple[str, ...],
    tactics: Tactics,
    cached: CacheEntry | None,
) -> Lock:
    """Everything that went in, and every choice that came out."""
    return Lock(
        schema=LOCK_SCHEMA,
        tool_version=trtplug.__version__,
        model=ManifestModel(file=ground.plan.model_file, sha256=ground.plan.model_sha256),
        target=planned.target,
        backend=ground.plan.backend,
        backend_version=outcome.builder_version,
        library=outcome.library,
        gpu=lock_gpu(cached.sidecar.identity) if cached else None,
        shapes=shapes,
        precision=ground.plan.precision,
        flags=ground.plan.flags,
        engine=ManifestEngine(
            file=f"{planned.sm}/{report.engine.file}",
            sha256=report.engine.sha256,
            canonical_sha256=report.engine.canonical_sha256,
            bytes=report.engine.bytes,
        ),
        timing_cache=_lock_cache(planned.sm, cached) if cached else None,
        layers=lock_layers(report),
        tactics=(
            lock_tactics(
                cached.sidecar.winners, tactics.tables, ground.prepared.names, tactics.asked_by
            )
            if cached
            else None
        ),
        sites=lock_sites(report),
    )


def _lock_cache(sm: str, cached: CacheEntry) -> LockCache:
    sidecar = cached.sidecar
    return LockCache(file=f"{sm}/{CACHE}", sha256=sidecar.sha256, keys=len(sidecar.tactics))
