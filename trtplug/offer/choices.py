"""The choice for each site of a model at hand: its problems, and what is decided of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.candidates.problems import Unsized, pair_problem, site_problem, size_ranges
from trtplug.errors import NodeInvalidError, ShapeError
from trtplug.model.graph import index_graph
from trtplug.plan.sites import Ask, AskedUnit, Choices, choose_sites
from trtplug.profile import find_profile
from trtplug.rewrite.find import find_all
from trtplug.tactics.choose import Place
from trtplug.tactics.space import DEFAULT_SHARED_BYTES

if TYPE_CHECKING:
    from trtplug.model.source import Source
    from trtplug.plan.evidence import Evidence
    from trtplug.plugin_wish import PluginWish
    from trtplug.profile import GpuProfile
    from trtplug.tactics.either import EitherProblem
    from trtplug.target import Sm


def choices_of(source: Source, ask: Ask) -> Choices:
    """The choices for a model in the precision asked for, over all its optimization profiles.

    Raises:
        UsageError: a glob that matches nothing.
        NodeInvalidError: a convolution contradicts itself.
    """
    return choose_sites(list_units(source), ask)


def make_ask(
    wish: PluginWish,
    evidence: Evidence,
    gpu: str,
    sm: Sm,
    gpus: tuple[str, ...],
    profiles: tuple[GpuProfile, ...],
    shared_bytes: int | None,
) -> Ask:
    """What choices on a GPU are made from.

    Args:
        wish: what the user asked for.
        evidence: measurements.
        gpu: name of the GPU, as its driver tells it.
        sm: of the GPU.
        gpus: names of profiles of that SM; the first stands in where the GPU has none of its own.
        profiles: all of them.
        shared_bytes: limit on a tactic's shared memory, where the user gave one.
    """
    known = (find_profile(name, profiles) for name in (gpu, *gpus))
    profile = next((p for p in known if p is not None and p.sm == sm), None)
    shared = DEFAULT_SHARED_BYTES if shared_bytes is None else shared_bytes
    place = Place(sm=sm, profile=profile, shared_bytes=shared)
    return Ask(wish=wish, gpu=gpu, place=place, evidence=evidence)


def list_units(source: Source) -> tuple[AskedUnit, ...]:
    """Every site and every pair of a model."""
    model = source.model
    found = find_all(model)
    main = {node.label for node in index_graph(model.proto.graph).nodes}
    convs: dict[str, tuple[str, ...]] = {s.conv: (s.conv,) for s in found.sites}
    convs |= {p.label: (p.depthwise.conv, p.pointwise.conv) for p in found.pairs}
    try:
        sizes = size_ranges(model, (source.ranges, *source.more))
    except (NodeInvalidError, ShapeError) as error:
        # No reason to end a build that goes without: a builder may well take the model.
        problems: dict[str, EitherProblem | Unsized] = {
            label: Unsized(site=label, problem=f"sizes are not known: {error.message}")
            for label in convs
        }
    else:
        problems = {s.conv: site_problem(s, sizes, None) for s in found.sites}
        problems |= {p.label: pair_problem(p, sizes, None) for p in found.pairs}
    return tuple(
        _unit(label, both, problems[label], inside=both[0] in main) for label, both in convs.items()
    )


def _unit(
    label: str, convs: tuple[str, ...], problem: EitherProblem | Unsized, *, inside: bool
) -> AskedUnit:
    if not inside:
        obstacle = "it stands in a subgraph"
    else:
        obstacle = problem.problem if isinstance(problem, Unsized) else ""
    usable = None if obstacle or isinstance(problem, Unsized) else problem
    return AskedUnit(label=label, convs=convs, problem=usable, obstacle=obstacle)
