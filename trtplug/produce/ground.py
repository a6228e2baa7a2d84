"""What all targets of one command have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.model.precision_rules import Island
from trtplug.model.prepare import Prepared
from trtplug.plan.plan import Plan
from trtplug.profile import GpuProfile
from trtplug.report.model_facts import ModelFacts

if TYPE_CHECKING:
    # It loads the tactics, which most builds have no use for.
    from trtplug.offer.offer import PluginOffer  # noqa: TC004


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
