"""What all builds of one command have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend
from trtplug.backends.options import BuildOptions
from trtplug.backends.run_child import Limits
from trtplug.lock.policy import TacticPolicy
from trtplug.model.precision_options import PrecisionWish
from trtplug.model.precision_rules import Island
from trtplug.model.source import Prepared
from trtplug.plan import Plan
from trtplug.profile import GpuProfile
from trtplug.report.model_facts import ModelFacts
from trtplug.store import Store
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from trtplug.lock.lock import Lock  # noqa: TC004
    from trtplug.plugin.job import PluginJob  # noqa: TC004
    from trtplug.plugin.offer import PluginOffer  # noqa: TC004


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What all targets of one command have in common."""

    plan: Plan
    facts: ModelFacts
    oddities: tuple[str, ...]
    """What is odd about the model, one sentence each."""
    prepared: Prepared
    """The model as the builder was given it."""
    islands: tuple[Island, ...]
    """Nodes that `--precision` left in float32."""
    profiles: tuple[GpuProfile, ...]
    folder: Path
    """The bundle under way."""
    reproducible: bool = True
    """Whether the builder gives the same bytes again."""
    place: str = ""
    """What engines depend on beside their SM, such as GPU and driver."""
    offers: Mapping[str, PluginOffer] = field(default_factory=dict)
    """Target -> which sites were to get the plugin; empty where the backend takes none."""
