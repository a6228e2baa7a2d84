"""Which sites get the plugin: a choice for each, with its reason in a sentence. Pure.

A choice is made once, from the model, options and measurements; no time is guessed. `auto` takes
the plugin only where a measurement of that very problem, on a GPU of that name, says that it wins
with all reformats that it brings.
"""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import UsageError
from trtplug.kernels import nvrtc
from trtplug.kernels.choose import KernelTarget, Offer, choose_offer
from trtplug.kernels.family import DEFAULT_SHARED_BYTES
from trtplug.plan import PlannedSite
from trtplug.plugin.evidence import NO_EVIDENCE, Evidence, problem_digest
from trtplug.plugin.options import PluginOptions
from trtplug.plugin.units import PluginCandidate, PluginUnit
from trtplug.profile import find_profile
from trtplug.settings import matches_any, resource_folder
from trtplug.store import key_of, sha256_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.kernels.catalog import Catalog
    from trtplug.plugin.evidence import SiteMeasurement
    from trtplug.profile import GpuProfile
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginQuery:
    """What the choices for one GPU are made from, beside the model."""

    options: PluginOptions
    gpu: str
    """Name of the GPU, as its driver reports it."""
    place: KernelTarget
    evidence: Evidence = NO_EVIDENCE


def choose_sites(
    candidates: Sequence[PluginCandidate], query: PluginQuery
) -> tuple[PlannedSite, ...]:
    """The choices: pairs first, then sites, each in the model's order.

    Args:
        candidates: every site of the model, and every pair.
        query: options, GPU and measurements.

    Raises:
        UsageError: a glob that matches nothing.
    """
    options = query.options
    labels = [c.label for c in candidates if options.pairs or not c.is_pair]
    _check_globs("--plugin-sites", options.sites, labels, "`trtplug sites` lists them")
    names = [t.name for t in query.place.catalog.tactics]
    _check_globs("--plugin-tactics", options.tactics, names, "`trtplug kernels list` lists them")
    pairs: dict[str, PlannedSite] = {}
    planned = []
    for candidate in sorted(candidates, key=lambda c: not c.is_pair):
        pair = pairs.get(candidate.convs[0])
        site = _planned(candidate, query if pair is None else pair)
        if candidate.is_pair and pair is None and site.choice == "plugin":
            pairs |= dict.fromkeys(candidate.convs, site)
        planned.append(site)
    return tuple(planned)


def plugin_units(
    candidates: Sequence[PluginCandidate], sites: Sequence[PlannedSite], catalog: Catalog
) -> tuple[PluginUnit, ...]:
    """The units to build for the sites of a plan; both sites of a pair are one unit.

    Args:
        candidates: of the same model.
        sites: as `choose_sites` orders them.
        catalog: of tactics.
    """
    by_label = {c.label: c for c in candidates}
    units: list[PluginUnit] = []
    taken: set[str] = set()
    for site in sites:
        candidate = by_label[site.site]
        if site.choice == "native" or candidate.problem is None or site.convs[0] in taken:
            continue
        taken.update(site.convs)
        tactics = tuple(t for name in site.tactics if (t := catalog.find(name)) is not None)
        units.append(PluginUnit(candidate=candidate, problem=candidate.problem, tactics=tactics))
    return tuple(units)


def without(sites: Sequence[PlannedSite], lost: Mapping[str, str]) -> tuple[PlannedSite, ...]:
    """The same with some units native after all: label of the unit -> reason."""
    reasons = {c: lost[s.site] for s in sites if s.site in lost for c in s.convs}
    return tuple(_as_native(s, reasons[s.convs[0]]) if _is_lost(s, reasons) else s for s in sites)


def _is_lost(site: PlannedSite, reasons: Mapping[str, str]) -> bool:
    found = {reasons.get(conv) for conv in site.convs}
    return site.choice == "plugin" and len(found) == 1 and None not in found


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


def _decide(candidate: PluginCandidate, query: PluginQuery) -> tuple[Offer, str] | str:
    """What is offered for a candidate and why, or why it is native."""
    options, problem = query.options, candidate.problem
    if options.mode == "never":
        return "--plugin never"
    if candidate.is_pair and not options.pairs:
        return "--no-plugin-pairs"
    if not _matches(candidate.label, options.sites):
        return "not among --plugin-sites"
    if problem is None:
        return candidate.obstacle
    measured = query.evidence.find(problem, query.gpu)
    if options.mode == "auto" and (measured is None or not measured.plugin_wins):
        return _why_native(measured)
    tactic = measured.tactic if measured is not None else None
    offer = choose_offer(problem, query.place, lambda n: _matches(n, options.tactics), tactic)
    if isinstance(offer, str):
        return offer
    offered = [t.name for t in offer.tactics]
    if options.mode == "auto" and tactic is not None and tactic not in offered:
        # A measurement of one kernel does not carry over to others.
        return f"{tactic}, which was measured, is no tactic that may be offered here"
    reason = "--plugin always" if options.mode == "always" else _why_plugin(measured)
    return offer, f"{reason}; {offer.why}"


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


def _planned(candidate: PluginCandidate, by: PluginQuery | PlannedSite) -> PlannedSite:
    """The choice for a candidate, made from a query or given by the pair that it is in."""
    native = PlannedSite(
        site=candidate.label,
        convs=candidate.convs,
        choice="native",
        reason="",
        problem_sha256=problem_digest(candidate.problem) if candidate.problem else None,
        tactics=(),
        packing=None,
    )
    if isinstance(by, PlannedSite):
        reason, tactics, packing = f"in pair {by.site}", by.tactics, by.packing
    else:
        decided = _decide(candidate, by)
        if isinstance(decided, str):
            return dataclasses.replace(native, reason=decided)
        offer, reason = decided
        tactics, packing = tuple(t.name for t in offer.tactics), offer.packing
    return dataclasses.replace(
        native, choice="plugin", reason=reason, tactics=tactics, packing=packing
    )


def make_query(
    options: PluginOptions,
    evidence: Evidence,
    gpu: str,
    sm: Sm,
    gpus: tuple[str, ...],
    profiles: tuple[GpuProfile, ...],
    shared_bytes: int | None,
) -> PluginQuery:
    """What choices on a GPU are made from.

    Args:
        options: as the user gave them.
        evidence: measurements.
        gpu: name of the GPU, as its driver reports it.
        sm: of the GPU.
        gpus: names of profiles of that SM; the first is used where the GPU has none of its own.
        profiles: all of them.
        shared_bytes: limit on a tactic's shared memory, where the user gave one.
    """
    known = (find_profile(name, profiles) for name in (gpu, *gpus))
    profile = next((p for p in known if p is not None and p.sm == sm), None)
    shared = DEFAULT_SHARED_BYTES if shared_bytes is None else shared_bytes
    place = KernelTarget(sm=sm, profile=profile, shared_bytes=shared)
    return PluginQuery(options=options, gpu=gpu, place=place, evidence=evidence)


def kernels_digest() -> str:
    """What the kernels come from: digest of the sources and the compiler's version.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    folder = resource_folder("plugins")
    sources = {str(file.relative_to(folder)): sha256_of(file) for file in folder.rglob("*.cuh")}
    return key_of({"sources": sources, "compiler": nvrtc.version()})
