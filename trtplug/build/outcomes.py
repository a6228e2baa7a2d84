"""What became of a target's builds: its files, or why there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import trtplug
from trtplug.bundle.manifest import (
    SCHEMA,
    Manifest,
    ManifestFailure,
    ManifestFile,
    ManifestModel,
    ManifestTarget,
    describe_file,
    write_manifest,
)
from trtplug.errors import (
    BuilderCrashedError,
    BuildFailedError,
    BuildMemoryError,
    BuildTimeoutError,
    LockMismatchError,
    OutputError,
    ParseFailedError,
    TacticUnavailableError,
    TargetUnsupportedError,
    TrtplugError,
    error_from_plain,
)
from trtplug.plan import Plan, PlannedTarget
from trtplug.plugin.options import KERNEL_LOG
from trtplug.report.data import Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.strategy import BuildStrategy
    from trtplug.bundle.manifest import Agreement
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Exactly one of `made` and `error` is set."""

    target: PlannedTarget
    made: ManifestTarget | None = None
    report: Report | None = None
    """Set where it was made just now; what the store had has its report in the bundle alone."""
    error: TrtplugError | None = None


LOGS = ("build.log", KERNEL_LOG)
"""What a target that failed keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build command made."""

    manifest: Manifest
    reports: Mapping[str, Report]
    """By target; without those of targets that were in the store."""
    gate_problems: tuple[str, ...] = ()
    """Why a gate failed; the bundle was written all the same."""


def built_of(
    plan: Plan, results: Sequence[Result], folder: Path, gate_problems: tuple[str, ...]
) -> Built:
    """Writes the manifest of a bundle under way, in the order of the plan's targets."""
    order = {target.target: place for place, target in enumerate(plan.targets)}
    results = sorted(results, key=lambda r: order[r.target.target])
    failed = [r for r in results if r.made is None]
    manifest = Manifest(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=ManifestModel(file=plan.model_file, sha256=plan.model_sha256),
        plan_sha256=plan.sha256,
        targets=tuple(r.made for r in results if r.made is not None),
        failures=tuple(_failure(r, folder) for r in failed),
        files=tuple(f for r in failed for f in _log_files(r, folder)),
    )
    write_manifest(folder, manifest)
    reports = {r.target.target: r.report for r in results if r.report is not None}
    return Built(manifest=manifest, reports=reports, gate_problems=gate_problems)


def _failure(result: Result, folder: Path) -> ManifestFailure:
    """A target that was not built, as the manifest lists it."""
    error = result.error
    assert error is not None
    logs = _log_files(result, folder)
    return ManifestFailure(
        target=result.target.target,
        code=error.code,
        message=error.message,
        hint=error.hint,
        log=logs[0].path if logs else None,
    )


def _log_files(result: Result, folder: Path) -> tuple[ManifestFile, ...]:
    """The logs of a failed build, where there are any; the builder's own comes first."""
    paths = (f"{result.target.sm}/{name}" for name in LOGS)
    return tuple(describe_file(folder, path) for path in paths if (folder / path).is_file())


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


def unsupported(target: str, sm: Sm, backend: str, sms: Sequence[Sm]) -> TargetUnsupportedError:
    """The error for an SM that a backend does not build for."""
    return TargetUnsupportedError(
        target=target,
        backend=backend,
        supported=tuple(map(str, sms)),
        who=f"build it with TensorRT (enterprise) on a machine with a {sm} GPU",
    )


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
        made, report = strategy.finish(ordered, _agreement(outcomes))
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
    from trtplug.bundle.engine_file import canonical_sha256
    from trtplug.bundle.manifest import Agreement

    canonical = {canonical_sha256(Path(o.folder) / "engine") for o in outcomes}
    return Agreement(
        builds=len(outcomes),
        same_bytes=len({o.engine_sha256 for o in outcomes}) == 1,
        same_canonical=len(canonical) == 1,
    )


def _store(strategy: BuildStrategy, made: ManifestTarget) -> None:
    """Keeps the result for the next build; a store that cannot be written costs only time."""
    from trtplug.bundle.bundle import put_entry

    if made.backend_version != strategy.plan.backend_version:
        return
    target, bundle = strategy.target, strategy.folders[0].parent
    known = {f.path.rpartition("/")[2]: f.sha256 for f in made.files}
    strategy.context.store.keep(
        target.key, {"target": target.target}, partial(put_entry, bundle, made), known
    )
