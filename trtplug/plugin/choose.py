"""Which sites get the plugin: a choice for each, with its reason in a sentence. Pure.

A choice is made once, from the model, the wish and measurements; no time is guessed. `auto` takes
the plugin only where a measurement of that very problem, on a GPU of that name, says that it wins
with all reformats that it brings.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import NodeInvalidError, ShapeError, UsageError
from trtplug.globs import matches_any
from trtplug.kernels.choose import KernelTarget, Offer, choose_offer
from trtplug.kernels.family import DEFAULT_SHARED_BYTES
from trtplug.kernels.problem import AnyProblem
from trtplug.kernels.problems import Unsized, pair_problem, site_problem, size_ranges
from trtplug.model.graph import index_graph
from trtplug.plan import PlannedSite
from trtplug.plugin.evidence import NO_EVIDENCE, Evidence, problem_digest
from trtplug.plugin.options import PluginWish
from trtplug.profile import find_profile
from trtplug.rewrite.find import find_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.model.source import Source
    from trtplug.plugin.evidence import SiteMeasurement
    from trtplug.profile import GpuProfile
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedUnit:
    """What one kernel could take: a site, or a pair of two."""

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

    asked: AskedUnit
    problem: AnyProblem
    offer: Offer
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """A choice for each site and pair of a model."""

    sites: tuple[PlannedSite, ...]
    """Pairs first, then sites, each in the model's order."""
    units: tuple[PluginUnit, ...]
    """Those that get the plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """All that choices are made from, beside the model."""

    wish: PluginWish
    gpu: str
    """Name of the GPU, as its driver tells it."""
    place: KernelTarget
    evidence: Evidence = NO_EVIDENCE


def choose_sites(units: Sequence[AskedUnit], ask: Ask) -> Choices:
    """The choices.

    Args:
        units: every site of the model, and every pair.
        ask: what is wished, where, and what is known.

    Raises:
        UsageError: a glob that matches nothing.
    """
    labels = [u.label for u in units if ask.wish.pairs or not u.is_pair]
    _check_globs("--plugin-sites", ask.wish.sites, labels, "`trtplug sites` lists them")
    names = [t.name for t in ask.place.catalog.tactics]
    _check_globs("--plugin-tactics", ask.wish.tactics, names, "`trtplug kernels list` lists them")
    inside: dict[str, PluginUnit] = {}
    planned = []
    for unit in sorted(units, key=lambda u: not u.is_pair):
        around = inside.get(unit.convs[0])
        decided = _decide(unit, ask) if around is None else around
        if isinstance(decided, PluginUnit):
            inside |= dict.fromkeys(unit.convs, decided)
        planned.append(_planned(unit, decided))
    chosen = {id(u): u for u in inside.values()}
    return Choices(sites=tuple(planned), units=tuple(chosen.values()))


def without(choices: Choices, gone: dict[str, str]) -> Choices:
    """The same with some units native after all: label of the unit -> reason."""
    left = tuple(u for u in choices.units if u.asked.label not in gone)
    convs = {c: gone[u.asked.label] for u in choices.units if u.asked.label in gone
             for c in u.asked.convs}  # fmt: skip
    sites = []
    for site in choices.sites:
        reasons = {convs.get(c) for c in site.convs}
        reason = reasons.pop() if len(reasons) == 1 else None
        lost = reason is not None and site.choice == "plugin"
        sites.append(_as_native(site, reason or "") if lost else site)
    return Choices(sites=tuple(sites), units=left)


def _as_native(site: PlannedSite, reason: str) -> PlannedSite:
    return dataclasses.replace(site, choice="native", reason=reason, tactics=(), packing=None)


def _check_globs(option: str, globs: tuple[str, ...], names: Sequence[str], where: str) -> None:
    for glob in globs:
        if not any(matches_any(name, (glob,)) for name in names):
            near = difflib.get_close_matches(glob, names, n=3, cutoff=0.3)
            advice = f"did you mean {' or '.join(map(repr, near))}?" if near else where
            raise UsageError(f"{option} {glob!r} matches nothing", advice)


def _matches(name: str, globs: tuple[str, ...]) -> bool:
    return not globs or matches_any(name, globs)


def _decide(unit: AskedUnit, ask: Ask) -> PluginUnit | str:
    """The unit with what is offered for it, or why it is native."""
    wish = ask.wish
    if wish.mode == "never":
        return "--plugin never"
    if unit.is_pair and not wish.pairs:
        return "--no-plugin-pairs"
    if not _matches(unit.label, wish.sites):
        return "not among --plugin-sites"
    if unit.problem is None:
        return unit.obstacle
    measured = ask.evidence.find(unit.problem, ask.gpu)
    if wish.mode == "auto" and (measured is None or not measured.plugin_wins):
        return _why_native(measured)
    tactic = measured.tactic if measured is not None else None
    offer = choose_offer(unit.problem, ask.place, lambda n: _matches(n, wish.tactics), tactic)
    if isinstance(offer, str):
        return offer
    if wish.mode == "auto" and tactic is not None and all(t.name != tactic for t in offer.tactics):
        # What was measured says nothing of other kernels.
        return f"{tactic}, which was measured, is no tactic that may be offered here"
    reason = "--plugin always" if wish.mode == "always" else _why_plugin(measured)
    return PluginUnit(asked=unit, problem=unit.problem, offer=offer, reason=reason)


def _why_native(measured: SiteMeasurement | None) -> str:
    if measured is None:
        return "nothing measured here"
    close = measured.with_plugin_us < measured.without_us
    spread = ", which is within the spread of the samples" if close else ""
    return f"{_figures(measured)}{spread}"


def _why_plugin(measured: SiteMeasurement | None) -> str:
    assert measured is not None  # What `auto` takes, a measurement has said.
    return _figures(measured)


def _figures(measured: SiteMeasurement) -> str:
    """The medians, and where they were measured."""
    plugin, native = measured.samples
    reformats = " with its reformats" if measured.reformat_us else ""
    return (
        f"measured on {measured.gpu} (driver {measured.driver}, TensorRT "
        f"{measured.backend_version}): plugin {measured.with_plugin_us:.2f} us{reformats}, "
        f"native {measured.without_us:.2f} us, medians of {plugin} and {native} samples"
    )


def _planned(unit: AskedUnit, decided: PluginUnit | str) -> PlannedSite:
    digest = problem_digest(unit.problem) if unit.problem is not None else None
    if isinstance(decided, str):
        return PlannedSite(
            site=unit.label,
            convs=unit.convs,
            choice="native",
            reason=decided,
            problem_sha256=digest,
            tactics=(),
            packing=None,
        )
    own = decided.asked is unit
    reason = f"{decided.reason}; {decided.offer.why}" if own else f"in pair {decided.asked.label}"
    return PlannedSite(
        site=unit.label,
        convs=unit.convs,
        choice="plugin",
        reason=reason,
        problem_sha256=digest,
        tactics=tuple(t.name for t in decided.offer.tactics),
        packing=decided.offer.packing,
    )


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
    place = KernelTarget(sm=sm, profile=profile, shared_bytes=shared)
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
        problems: dict[str, AnyProblem | Unsized] = {
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
    label: str, convs: tuple[str, ...], problem: AnyProblem | Unsized, *, inside: bool
) -> AskedUnit:
    if not inside:
        obstacle = "it stands in a subgraph"
    else:
        obstacle = problem.problem if isinstance(problem, Unsized) else ""
    usable = None if obstacle or isinstance(problem, Unsized) else problem
    return AskedUnit(label=label, convs=convs, problem=usable, obstacle=obstacle)
