"""Sites and pairs on their way into an engine: candidate, unit, compiled, placed, offered."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import NodeInvalidError, ShapeError
from trtplug.kernels.family import AnyTactic
from trtplug.kernels.kit import KitSite
from trtplug.kernels.problem import AnyProblem
from trtplug.kernels.problems import Unsized, pair_problem, site_problem, size_ranges
from trtplug.model.graph import index_graph
from trtplug.plan import PlannedSite
from trtplug.plugin.options import PluginMode
from trtplug.rewrite.find import find_all

if TYPE_CHECKING:
    from trtplug.model.source import Source

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCandidate:
    """What one kernel could compute: a site, or a pair of two."""

    label: str
    """Of its convolution; of a pair both, such as `dw+pw`."""
    convs: tuple[str, ...]
    problem: AnyProblem | None
    obstacle: str = ""
    """Why it has no problem."""

    @property
    def is_pair(self) -> bool:
        """Whether it is a pair."""
        return len(self.convs) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginUnit:
    """A site or pair that gets the plugin."""

    candidate: PluginCandidate
    problem: AnyProblem
    tactics: tuple[AnyTactic, ...]
    """Offered to the builder; all read one packing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyUnit:
    """A site or pair whose kernels are compiled."""

    unit: PluginUnit
    site: KitSite
    """What the builder may choose from."""
    tactic: AnyTactic
    """One of them: all read the packing that it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedUnit:
    """A unit in the model that is built."""

    ready: ReadyUnit
    node: str
    """Name of the plugin node, which TensorRT's layer gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOffer:
    """The choices for one GPU, and the files that go with them."""

    mode: PluginMode
    sites: tuple[PlannedSite, ...]
    """As planned; native where no kernel compiled."""
    placed: tuple[PlacedUnit, ...] = ()
    """The plugin nodes of the model that is built."""
    model: Path | None = None
    """The model with them, to be read in place of the source's; None where there are none."""
    kit: Path | None = None
    """Folder of the kit."""
    log: str = ""
    """The compiler's messages about kernels that it refused."""

    @property
    def unit_of(self) -> dict[str, PlacedUnit]:
        """Label of a convolution -> the unit that it is in."""
        return {conv: unit for unit in self.placed for conv in unit.ready.unit.candidate.convs}


def list_candidates(source: Source) -> tuple[PluginCandidate, ...]:
    """Every site and every pair of a model, over all its optimization profiles.

    Raises:
        NodeInvalidError: a convolution contradicts itself.
    """
    model = source.model
    found = find_all(model)
    main = {node.label for node in index_graph(model.proto.graph).nodes}
    convs: dict[str, tuple[str, ...]] = {s.conv: (s.conv,) for s in found.sites}
    convs |= {p.label: (p.depthwise.conv, p.pointwise.conv) for p in found.pairs}
    try:
        sizes = size_ranges(model, (source.ranges, *source.more))
    except (NodeInvalidError, ShapeError) as error:
        # No reason to end a build that goes without: a builder may well take the model.
        _log.info("no site gets the plugin: sizes are not known: %s", error.message)
        problems: dict[str, AnyProblem | Unsized] = {
            label: Unsized(site=label, problem=f"sizes are not known: {error.message}")
            for label in convs
        }
    else:
        problems = {s.conv: site_problem(s, sizes, None) for s in found.sites}
        problems |= {p.label: pair_problem(p, sizes, None) for p in found.pairs}
    return tuple(
        _candidate(label, both, problems[label], inside=both[0] in main)
        for label, both in convs.items()
    )


def _candidate(
    label: str, convs: tuple[str, ...], problem: AnyProblem | Unsized, *, inside: bool
) -> PluginCandidate:
    if not inside:
        obstacle = "it is in a subgraph"
    else:
        obstacle = problem.problem if isinstance(problem, Unsized) else ""
    usable = None if obstacle or isinstance(problem, Unsized) else problem
    return PluginCandidate(label=label, convs=convs, problem=usable, obstacle=obstacle)
