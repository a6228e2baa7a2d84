"""What all builds of one command have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend
from trtplug.backends.options import BuildOptions
from trtplug.backends.worker import Limits
from trtplug.engine.tactic_policy import TacticPolicy
from trtplug.plan.plan import Plan
from trtplug.precision import PrecisionWish
from trtplug.profile import GpuProfile
from trtplug.store import Store
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    # Few builds need them, and children start the later the more is loaded.
    from trtplug.engine.lock import Lock  # noqa: TC004
    from trtplug.offer.for_build import PluginJob  # noqa: TC004

_MENDED = "model.onnx"


_WORK = ".work"
"""Below the bundle under way: what builders need and no bundle holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What all builds of one command have in common."""

    model: Path
    ranges: tuple[ShapeRange, ...]
    """As given on the command line."""
    more_profiles: tuple[tuple[ShapeRange, ...], ...]
    precision: PrecisionWish
    options: BuildOptions
    limits: Limits
    jobs: int
    backend: Backend
    profiles: tuple[GpuProfile, ...]
    store: Store
    plan: Plan
    ahead: bool
    """Whether builds may start while the model is still being checked here."""
    folder: Path
    """The bundle under way."""
    timing_caches: Path
    """The store of timing caches."""
    policy: TacticPolicy
    lock: Lock | None
    """To be replayed."""
    plugins: PluginJob | None = None
    """None where the backend takes none."""

    @property
    def work(self) -> Path:
        """What builders need and no bundle holds."""
        return self.folder / _WORK

    @property
    def mended(self) -> Path:
        """Where the mended copy of the model lies, if there is one."""
        return self.work / _MENDED
