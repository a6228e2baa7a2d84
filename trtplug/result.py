"""How one target ended: an engine with its files, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.engine.contents import describe_file
from trtplug.engine.manifest import Manifest, ManifestFailure, ManifestFile, ManifestTarget
from trtplug.errors import TrtplugError
from trtplug.offer.for_build import KERNEL_LOG
from trtplug.plan.plan import PlannedTarget
from trtplug.report.report import Report

if TYPE_CHECKING:
    from pathlib import Path


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
    manifest: Manifest, results: list[Result], gate_problems: tuple[str, ...] = ()
) -> Built:
    """The manifest with the reports that were made for it."""
    reports = {r.target.target: r.report for r in results if r.report is not None}
    return Built(manifest=manifest, reports=reports, gate_problems=gate_problems)


def failure_entry(result: Result, folder: Path) -> ManifestFailure:
    """A target that was not built, as the manifest lists it."""
    error = result.error
    assert error is not None
    logs = log_files(result, folder)
    return ManifestFailure(
        target=result.target.target,
        code=error.code,
        message=error.message,
        hint=error.hint,
        log=logs[0].path if logs else None,
    )


def log_files(result: Result, folder: Path) -> tuple[ManifestFile, ...]:
    """The logs of a failed build, where there are any; the builder's own comes first."""
    paths = (f"{result.target.sm}/{name}" for name in LOGS)
    return tuple(describe_file(folder, path) for path in paths if (folder / path).is_file())
