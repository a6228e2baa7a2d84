"""The files of a target that was built: engine, report and lock, as the manifest lists them."""

from __future__ import annotations

import logging
import platform
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import Listing, parse_inspector_json, parse_layer_text
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
    from trtplug.backends.backend import Outcome
    from trtplug.backends.tactic_table import CandidateTable
    from trtplug.build.context import BuildContext
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.plugin.offer import PluginOffer
    from trtplug.timing.files import CacheEntry

_log = logging.getLogger(__name__)


_LONGEST_STEM = 60
"""Characters, of up to 4 bytes each: file names end at 255 bytes on most systems."""


def write_target(
    context: BuildContext,
    plan: Plan,
    target: PlannedTarget,
    outcome: Outcome,
    agreement: Agreement | None,
    tactics: Tactics | None = None,
    offer: PluginOffer | None = None,
) -> tuple[ManifestTarget, Report]:
    """Names the engine, writes report and lock beside it, and says what the manifest holds.

    Args:
        context: of the command.
        plan: of the command.
        target: the one that was built.
        outcome: of its build, whose folder is the target's own in the bundle.
        agreement: of repeated builds.
        tactics: what is known of them beside the build's log. The timing cache itself, and its
            sidecar, are taken from the target's folder where they lie there.
        offer: of plugins; None where the backend takes none.

    Raises:
        BuildFailedError: the file is not what the builder gave.
        CacheUnusableError: the timing cache is not what its sidecar says.
    """
    folder = Path(outcome.folder)
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


def consume_listing(place: Path) -> Listing | None:
    """The layers, from the builder's text, which is removed, or from the inspector's file."""
    text, inspector = place / "layers.txt", place / "inspector.json"
    if text.is_file():
        listing = parse_layer_text(text.read_text(encoding="utf-8"))
        text.unlink()
        return listing
    if inspector.is_file():
        try:
            return parse_inspector_json(inspector.read_text(encoding="utf-8", errors="replace"))
        except ValueError as error:
            _log.info("inspector.json is not used: %s", error)
            return None  # the report says that there is none
    return None


def read_shipped_cache(place: Path) -> CacheEntry | None:
    """The timing cache that ships beside the engine, where there is one with its sidecar.

    Raises:
        CacheUnusableError: it is not what its sidecar says.
    """
    if not all((place / name).is_file() for name in CACHE_FILES):
        return None
    return read_cache(place / CACHE)


def read_tables(log: Path) -> tuple[CandidateTable, ...]:
    """The candidate tables in a builder's log, and what it took from its timing cache.

    What the log times in one place and takes from the cache in another (a second profile asks for
    all layers again) is both. Most logs of TensorRT-RTX have neither, and are not parsed.
    """
    data = log.read_bytes()
    if b"Autotuning " not in data and b"got cached result" not in data:
        return ()
    from trtplug.backends.tactic_table import with_plain_hashes
    from trtplug.backends.trt.tactic_log import parse_tactic_text

    found = parse_tactic_text(data.decode("utf-8", "replace"))
    tables = (*found.tables, *(hit.table() for hit in found.hits))
    return tuple(map(with_plain_hashes, tables))
