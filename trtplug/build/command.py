"""What `trtplug build` is given, and what it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from trtplug.backends.options import BuildOptions
from trtplug.backends.run_child import Limits
from trtplug.bundle.manifest import Manifest, ManifestTarget
from trtplug.errors import TrtplugError
from trtplug.lock.policy import TacticPolicy
from trtplug.model.precision_options import PrecisionOptions
from trtplug.plan import PlannedTarget
from trtplug.plugin.options import KERNEL_LOG, PluginOptions
from trtplug.report.data import Report
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from trtplug.backends.request import Event
    from trtplug.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCommand:
    """What `trtplug build` was asked to do."""

    model: Path
    targets: tuple[str, ...]
    """Each a profile, an SM, `local` or `all`; empty for the target of `policy.locked`."""
    profiles: tuple[tuple[ShapeRange, ...], ...] = ((),)
    """Optimization profiles, the first from `--shape`; inputs of fixed sizes need no range."""
    out: Path
    precision: PrecisionOptions = field(default_factory=PrecisionOptions)
    backend: str = "auto"
    options: BuildOptions = field(default_factory=BuildOptions)
    wait: bool = True
    """Wait while another build holds the GPU."""
    limits: Limits = field(default_factory=Limits)
    jobs: int = 2
    """Builds at once."""
    repeat: int = 1
    """Builds of each engine, to compare them."""
    force: bool = False
    """Build even where the store has the engine."""
    policy: TacticPolicy = field(default_factory=TacticPolicy)
    """Where tactics come from."""
    plugin: PluginOptions = field(default_factory=PluginOptions)


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


class Listener(Protocol):
    """Receives how a build goes."""

    def planned(self, plan: Plan) -> None:
        """Once, before anything is built."""

    def event(self, target: str, event: Event) -> None:
        """Progress of one build."""

    def ended(self, result: Result) -> None:
        """One target is done, or has failed."""
