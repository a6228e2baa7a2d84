"""The lock of a target."""

from __future__ import annotations

import platform
import re
import sys
from typing import TYPE_CHECKING

import trtplug
from trtplug.build.two_pass import read_shipped_cache, read_tables, take_listing
from trtplug.bundle.engine_file import canonical_sha256
from trtplug.bundle.manifest import (
    Agreement,
    ManifestEngine,
    ManifestFile,
    ManifestModel,
    ManifestTarget,
    describe_file,
)
from trtplug.document import to_json
from trtplug.errors import BuildFailedError
from trtplug.kernels.kernel_mark import find_marks
from trtplug.lock.lock import CACHE_FILES, LOCK, Lock, LockCache
from trtplug.lock.lock import SCHEMA as LOCK_SCHEMA
from trtplug.lock.parts import lock_gpu, lock_layers, lock_sites, lock_tactics
from trtplug.plugin.job import KERNEL_LOG
from trtplug.profile import find_profile
from trtplug.report.candidates import Tactics, report_timing_cache
from trtplug.report.data import NOT_RUN, Report, ReportEngine, ReportIsland
from trtplug.report.html import report_to_html
from trtplug.report.make import ReportInputs, make_report
from trtplug.report.sites import refuse_dropped
from trtplug.store import sha256_of
from trtplug.target import parse_target
from trtplug.timing.files import CACHE

if TYPE_CHECKING:
    from trtplug.backends.backend import Outcome
    from trtplug.backends.layer_listing import Listing
    from trtplug.build.context import Ground
    from trtplug.plan import PlannedTarget
    from trtplug.timing.files import CacheEntry


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


_LONGEST_STEM = 60
"""Characters, of up to 4 bytes each: file names end at 255 bytes on most systems."""


def produce_target(
    ground: Ground,
    planned: PlannedTarget,
    outcome: Outcome,
    agreement: Agreement | None,
    tactics: Tactics | None = None,
) -> tuple[ManifestTarget, Report]:
    """Names the engine, writes report and lock beside it, and says what the manifest holds.

    Args:
        ground: what all targets have in common.
        planned: the target.
        outcome: of its build.
        agreement: of repeated builds.
        tactics: what is known of them beside the build's log. The timing cache itself, and its
            sidecar, are taken from the target's folder where they lie there.

    Raises:
        BuildFailedError: the file is not what the builder gave.
        CacheUnusableError: the timing cache is not what its sidecar tells of.
    """
    place = ground.folder / planned.sm
    engine = _name_engine(ground, planned, outcome)
    listing = take_listing(place)
    tactics = tactics or Tactics()
    cached = read_shipped_cache(place)
    tactics = tactics.with_log(read_tables(place / "build.log"), cached)
    report = make_report(_inputs(ground, planned, outcome, engine, listing, tactics))
    _check_precision(ground.plan.precision, report)
    refuse_dropped(report, ground.offers.get(planned.target))
    (place / "report.json").write_text(to_json(report), encoding="utf-8")
    (place / "report.html").write_text(report_to_html(report), encoding="utf-8")
    shapes = tuple(str(r) for r in ground.facts.ranges)
    lock = make_lock(ground, planned, outcome, report, shapes, tactics, cached)
    (place / LOCK).write_text(to_json(lock), encoding="utf-8")
    further = (name for name in FURTHER_FILES if (place / name).is_file())
    names = ("report.json", "report.html", LOCK, "build.log", *further)
    made = ManifestTarget(
        target=planned.target,
        sm=planned.sm,
        gpus=planned.gpus,
        backend=ground.plan.backend,
        backend_version=outcome.builder_version,
        engine=lock.engine,
        files=(
            ManifestFile(path=lock.engine.file, sha256=engine.sha256, bytes=engine.bytes),
            *(describe_file(ground.folder, f"{planned.sm}/{name}") for name in names),
        ),
        shapes=shapes,
        precision=ground.plan.precision,
        flags=ground.plan.flags,
        from_store=False,
        build_seconds=round(outcome.seconds, 3),
        peak_bytes=outcome.peak_bytes,
        aslr_off=outcome.aslr_off,
        agreement=agreement,
        warnings=report.warnings,
    )
    return made, report


def engine_name(model_file: str, target: str) -> str:
    """File name of an engine, such as `det.rtx-1.7-sm_89.engine`; safe in any shell and system."""
    stem = re.sub(r"[^\w.-]", "_", model_file.rpartition(".")[0] or model_file)[:_LONGEST_STEM]
    return f"{stem}.{parse_target(target).file_part}.engine"


FURTHER_FILES = ("inspector.json", KERNEL_LOG, *CACHE_FILES)
"""Files of a target that only some builders leave."""


_DTYPES = {"fp16": "Half", "bf16": "BFloat16"}
"""Precision -> the builder's name of its type."""


def _check_precision(precision: str, report: Report) -> None:
    """A request for FP16 must not end in an FP32 engine, whatever the builder made of it."""
    wanted = _DTYPES.get(precision)
    if wanted and report.layers and wanted not in report.totals.layers_by_dtype:
        found = ", ".join(f"{d} {n}" for d, n in report.totals.layers_by_dtype.items())
        raise BuildFailedError(
            target=report.target,
            reasons=(f"no layer of the engine computes in {precision}; layers by type: {found}",),
            advice="this is a fault of the builder or of trtplug: please report it",
        )


def _name_engine(ground: Ground, planned: PlannedTarget, outcome: Outcome) -> ReportEngine:
    place = ground.folder / planned.sm
    file = place / engine_name(ground.plan.model_file, planned.target)
    (place / "engine").rename(file)
    digest = sha256_of(file)
    if digest != outcome.engine_sha256:
        raise BuildFailedError(
            target=planned.target,
            reasons=(f"{file.name} does not hold the bytes that the builder gave",),
            advice="look at the disk: a write went wrong without an error",
        )
    return ReportEngine(
        file=file.name,
        bytes=file.stat().st_size,
        sha256=digest,
        canonical_sha256=canonical_sha256(file),
    )


def _inputs(
    ground: Ground,
    planned: PlannedTarget,
    outcome: Outcome,
    engine: ReportEngine,
    listing: Listing | None,
    tactics: Tactics,
) -> ReportInputs:
    found = (find_profile(name, ground.profiles) for name in planned.gpus)
    offer = ground.offers.get(planned.target)
    return ReportInputs(
        facts=ground.facts,
        listing=listing,
        names=ground.prepared.names,
        target=planned.target,
        backend=ground.plan.backend,
        backend_version=outcome.builder_version,
        profiles=tuple(p for p in found if p is not None),
        engine=engine,
        precision=ground.plan.precision,
        islands=tuple(
            ReportIsland(node=i.node, op_type=i.op_type, reason=i.reason) for i in ground.islands
        ),
        flags=ground.plan.flags,
        environment=environment(outcome.library, ground.place),
        ran=_ran(ground, outcome, tactics),
        warnings=(
            *ground.oddities,
            *ground.prepared.repairs,
            *outcome.warnings,
            *tactics.warnings,
            *(_aslr_warning(outcome) if ground.reproducible else ()),
        ),
        tables=tactics.tables,
        selected_by=tactics.selected_by(),
        cache=report_timing_cache(tactics.cache, tactics.hits),
        offer=offer,
        kernels=(
            find_marks(ground.folder / planned.sm / engine.file) if offer and offer.placed else {}
        ),
    )


def _aslr_warning(outcome: Outcome) -> tuple[str, ...]:
    if outcome.aslr_off:
        return ()
    return (
        "Address-space randomisation could not be turned off here: "
        "another build may have other bytes.",
    )


def _ran(ground: Ground, outcome: Outcome, tactics: Tactics) -> tuple[str, ...]:
    """What is known of the engine's runs, and how far its kernels can be relied on."""
    ran = outcome.trial or NOT_RUN
    if ground.reproducible:
        return (ran,)
    if tactics.locked:
        return (ran, "Kernels are those of the lock; nothing was timed in this build.")
    return (ran, "Kernels were chosen by timing them: another build may choose others.")


def environment(library: str, place: str = "") -> dict[str, str]:
    """Where an engine was built; nothing in it names the machine."""
    return {
        **({"gpu": place} if place else {}),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "builder_library": library,
    }
