"""What is known beside a build's own outcome: of all targets, and of tactics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import CandidateTable
from trtplug.engine.pins import EditReason
from trtplug.engine.timing_cache import CacheOutcome
from trtplug.model.precision_rules import Island
from trtplug.model.prepare import Prepared
from trtplug.plan.plan import Plan
from trtplug.profile import GpuProfile
from trtplug.report.model_facts import ModelFacts

if TYPE_CHECKING:
    # It loads the tactics, which most builds have no use for.
    from trtplug.offer.offer import PluginOffer  # noqa: TC004


@dataclass(frozen=True, slots=True, kw_only=True)
class Tactics:
    """What is known of a build's tactics beside its own log."""

    cache: CacheOutcome | None = None
    """What the build did with its timing cache; None where the builder has none."""
    tables: tuple[CandidateTable, ...] = ()
    """Of an earlier pass or a lock; a table in the build's own log counts more."""
    asked_by: Mapping[str, EditReason] = field(default_factory=dict)
    """Cache key -> the wish that overruled the builder."""
    locked: bool = False
    """Whether a lock was replayed, so that no tactic is the builder's choice."""
    warnings: tuple[str, ...] = ()


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
