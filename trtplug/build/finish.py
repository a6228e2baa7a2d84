"""What is made of a target's builds: engine, report, lock and store entry; or an error."""

from __future__ import annotations

import platform
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.build.command import LOGS, Result
from trtplug.build.strategy import consume_listing, read_tables
from trtplug.bundle.bundle import put_entry
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
from trtplug.errors import (
    BuilderCrashedError,
    BuildFailedError,
    BuildMemoryError,
    BuildTimeoutError,
    LockMismatchError,
    OutputError,
    ParseFailedError,
    TacticUnavailableError,
    TrtplugError,
    error_from_plain,
)
from trtplug.kernels.kit import find_marks
from trtplug.lock.lock import CACHE_FILES, LOCK
from trtplug.lock.make import make_lock
from trtplug.plugin.options import KERNEL_LOG
from trtplug.report.candidates import Tactics
from trtplug.report.data import Report, ReportEngine
from trtplug.report.html import report_to_html
from trtplug.report.make import ReportInputs, make_report
from trtplug.report.sites import refuse_dropped
from trtplug.store import sha256_of
from trtplug.target import parse_target
from trtplug.tensor import element_type
from trtplug.timing.files import CACHE
from trtplug.timing.transfer import read_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.strategy import BuildStrategy
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.timing.files import CacheEntry

_LONGEST_STEM = 60
"""Characters, of up to 4 bytes each: file names end at 255 bytes on most systems."""


def write_target(
    strategy: BuildStrategy, outcome: Outcome, agreement: Agreement | None, tactics: Tactics | None
) -> tuple[ManifestTarget, Report]:
    """Names the engine, writes report and lock beside it, and says what the manifest holds.

    Args:
        strategy: of the target.
        outcome: of its build, whose folder is the target's own in the bundle.
        agreement: of repeated builds.
        tactics: what is known of them beside the build's log. The timing cache itself, and its
            sidecar, are taken from the target's folder where they lie there.

    Raises:
        BuildFailedError: the file is not what the builder gave.
        CacheUnusableError: the timing cache is not what its sidecar says.
    """
    context, plan, target = strategy.context, strategy.plan, strategy.target
    offer, folder = strategy.offer, Path(outcome.folder)
    engine = _name_engine(plan, target, outcome)
    listing = consume_listing(folder)
    cached = read_shipped_cache(folder)
    tactics = (tactics or Tactics()).with_log(read_tables(folder / "build.log"), cached)
    report = make_report(
        ReportInputs(
            plan=plan,
            target=target,
            source=context.source,
            facts=context.facts,
            outcome=outcome,
            engine=engine,
            listing=listing,
            profiles=context.gpu_profiles,
            tactics=tactics,
            offer=offer,
            kernels=find_marks(folder / engine.file) if offer and offer.placed else {},
            environment=environment(outcome.library, context.backend.device_fingerprint()),
            reproducible=context.backend.capabilities().reproducible,
        )
    )
    _check_precision(plan.precision, report)
    refuse_dropped(report, offer)
    (folder / "report.json").write_text(to_json(report), encoding="utf-8")
    (folder / "report.html").write_text(report_to_html(report), encoding="utf-8")
    made = ManifestTarget(
        target=target.target,
        sm=target.sm,
        gpus=target.gpus,
        backend=plan.backend,
        backend_version=outcome.builder_version,
        engine=ManifestEngine(
            file=f"{target.sm}/{engine.file}",
            sha256=engine.sha256,
            canonical_sha256=engine.canonical_sha256,
            bytes=engine.bytes,
        ),
        files=(),
        shapes=tuple(map(str, context.facts.ranges)),
        precision=plan.precision,
        flags=plan.flags,
        sites=target.sites,
        from_store=False,
        build_seconds=round(outcome.seconds, 3),
        peak_bytes=outcome.peak_bytes,
        aslr_off=outcome.aslr_off,
        agreement=agreement,
        warnings=report.warnings,
    )
    lock = make_lock(
        ManifestModel(file=plan.model_file, sha256=plan.model_sha256),
        made,
        outcome.library,
        report,
        context.source.prepared.names,
        tactics,
        cached,
    )
    (folder / LOCK).write_text(to_json(lock), encoding="utf-8")
    return replace(made, files=_files(folder, made.engine)), report


def _files(folder: Path, engine: ManifestEngine) -> tuple[ManifestFile, ...]:
    """All files of a target, the engine first."""
    further = (name for name in FURTHER_FILES if (folder / name).is_file())
    names = ("report.json", "report.html", LOCK, "build.log", *further)
    return (
        ManifestFile(path=engine.file, sha256=engine.sha256, bytes=engine.bytes),
        *(describe_file(folder.parent, f"{folder.name}/{name}") for name in names),
    )


def engine_name(model_file: str, target: str) -> str:
    """File name of an engine, such as `det.rtx-1.7-sm_89.engine`; safe in any shell and system."""
    stem = re.sub(r"[^\w.-]", "_", model_file.rpartition(".")[0] or model_file)[:_LONGEST_STEM]
    return f"{stem}.{parse_target(target).file_part}.engine"


FURTHER_FILES = ("inspector.json", KERNEL_LOG, *CACHE_FILES)
"""Files of a target that only some builders leave."""


def _check_precision(precision: str, report: Report) -> None:
    """A request for FP16 must not end in an FP32 engine."""
    wanted = element_type(precision).layer if precision != "keep" else ""
    if wanted and report.layers and wanted not in report.totals.layers_by_dtype:
        found = ", ".join(f"{d} {n}" for d, n in report.totals.layers_by_dtype.items())
        raise BuildFailedError(
            target=report.target,
            reasons=(f"no layer of the engine computes in {precision}; layers by type: {found}",),
            advice="this is a fault of the builder or of trtplug: please report it",
        )


def _name_engine(plan: Plan, planned: PlannedTarget, outcome: Outcome) -> ReportEngine:
    """Gives the engine its name, once it is sure to be what the builder gave."""
    folder = Path(outcome.folder)
    file = folder / engine_name(plan.model_file, planned.target)
    (folder / "engine").rename(file)
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


def environment(library: str, place: str = "") -> dict[str, str]:
    """Where an engine was built; nothing in it names the machine."""
    return {
        **({"gpu": place} if place else {}),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()).strip(),
        "builder_library": library,
    }


def read_shipped_cache(place: Path) -> CacheEntry | None:
    """The timing cache that ships beside the engine, where there is one with its sidecar.

    Raises:
        CacheUnusableError: it is not what its sidecar says.
    """
    if not all((place / name).is_file() for name in CACHE_FILES):
        return None
    return read_cache(place / CACHE)


def finish_target(strategy: BuildStrategy, outcomes: Sequence[Outcome]) -> Result:
    """The result of a target's builds; a failure is a value, so that other targets go on.

    Raises:
        TrtplugError: a reason that ends the whole command.
    """
    target, folder = strategy.target, strategy.folders[0]
    failed = next((o for o in outcomes if o.status != "built"), None)
    if failed is not None:
        if failed.status == "unwritable":
            raise OutputError(path=strategy.plan.out, problem="; ".join(failed.reasons))
        if (meant := strategy.explain_failure(failed)) is not None:
            raise meant
        _keep_the_logs_only(folder)
        limits = strategy.context.command.limits
        error = failure_of(failed, timeout_s=limits.timeout_s, memory_bytes=limits.memory_bytes)
        return Result(target=target, error=error)
    ordered = sorted(outcomes, key=lambda o: o.folder != str(folder))
    try:
        tactics = strategy.collect_tactics(ordered)
        made, report = write_target(strategy, ordered[0], _agreement(outcomes), tactics)
        strategy.check_report(report)
    except (LockMismatchError, TacticUnavailableError):
        raise
    except TrtplugError as error:
        _keep_the_logs_only(folder)
        return Result(target=target, error=error)
    if strategy.keeps(report):
        _store(strategy, made)
    return Result(target=target, made=made, report=report)


def _keep_the_logs_only(folder: Path) -> None:
    """Takes away what a target that failed has left; the manifest lists its logs alone."""
    for file in folder.iterdir():
        if file.name not in LOGS:
            file.unlink()


def _agreement(outcomes: Sequence[Outcome]) -> Agreement | None:
    """How far repeated builds agree; taken before the first engine gets its name."""
    if len(outcomes) == 1:
        return None
    canonical = {canonical_sha256(Path(o.folder) / "engine") for o in outcomes}
    return Agreement(
        builds=len(outcomes),
        same_bytes=len({o.engine_sha256 for o in outcomes}) == 1,
        same_canonical=len(canonical) == 1,
    )


def _store(strategy: BuildStrategy, made: ManifestTarget) -> None:
    """Keeps the result for the next build; a store that cannot be written costs only time."""
    if made.backend_version != strategy.plan.backend_version:
        return
    target, bundle = strategy.target, strategy.folders[0].parent
    known = {f.path.rpartition("/")[2]: f.sha256 for f in made.files}
    strategy.context.store.keep(
        target.key, {"target": target.target}, partial(put_entry, bundle, made), known
    )


_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"FP32 .*(is not|not) supported|for Turing \(SM75\): FP32",
        "this GPU takes the operation in FP16 only: build with --precision fp16",
    ),
    (
        r"bf16.*not supported|BF16.*(SM75|Turing)",
        "this GPU has no bfloat16: build with --precision fp16",
    ),
    (
        r"contradictory IOptimizationProfile",
        "axes of one name must have equal sizes: give equal sizes, or rename the axes in the model",
    ),
    (
        r"training_mode",
        "export the model again in evaluation mode: BatchNormalization uses batch statistics",
    ),
    (r"No space left", "free some space where --out lies, and build again"),
)


def failure_of(
    outcome: Outcome, *, timeout_s: float | None, memory_bytes: int | None
) -> TrtplugError:
    """The error for an outcome that is not `built`."""
    if outcome.error is not None:
        return error_from_plain(outcome.error)
    target, reasons = outcome.target, outcome.reasons
    match outcome.status:
        case "refused":
            return ParseFailedError(target=target, refusals=reasons, advice=advice_for(reasons))
        case "timeout":
            return BuildTimeoutError(target=target, limit_s=timeout_s or 0.0)
        case "memory":
            limit = None if outcome.how == "killed" else memory_bytes
            return BuildMemoryError(target=target, peak_bytes=outcome.peak_bytes, limit_bytes=limit)
        case "crashed":
            return BuilderCrashedError(target=target, how=outcome.how, last_lines=reasons)
        case _:
            return BuildFailedError(target=target, reasons=reasons, advice=advice_for(reasons))


def advice_for(reasons: Sequence[str]) -> str:
    """What to do about reasons that are known; empty where none is."""
    text = "\n".join(reasons)
    return next((advice for pattern, advice in _ADVICE if re.search(pattern, text)), "")
