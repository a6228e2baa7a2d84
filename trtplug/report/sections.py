"""The lists below the table of layers, as the terminal and Markdown show them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.report.heading import OUTCOMES, added_counts, choice_words, plural, site_words
from trtplug.report.rows import kernel_words, near_misses_by_reason, tensors_words
from trtplug.report.words import format_bytes, format_margin, format_us, visible

if TYPE_CHECKING:
    from trtplug.report.data import Report, ReportChoice, ReportLayer, ReportSite


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A name, which may hold anything, and words about it; either may be empty."""

    name: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with its lines."""

    title: str
    lines: tuple[Line, ...]


def sections(report: Report) -> tuple[Section, ...]:
    """What the builder added, sites, near misses; islands and warnings where there are any."""
    found = (
        Section(title=f"Added by the builder: {added_counts(report)}", lines=_added(report)),
        Section(title=_sites_title(report), lines=_sites(report)),
        *_choices(report),
        Section(title=f"Near misses: {report.totals.near_misses:,}", lines=_near_misses(report)),
        Section(title=f"Kept in float32: {len(report.islands):,}", lines=_islands(report)),
        Section(title=_asked_title(report), lines=_asked(report)),
        Section(title=_near_ties_title(report), lines=_near_ties(report)),
        Section(title=_unjoined_title(report), lines=_unjoined(report)),
        Section(title="Warnings", lines=_plain(report.warnings)),
    )
    always = 3 + len(_choices(report))
    return found[:always] + tuple(s for s in found[always:] if s.lines)


def _added(report: Report) -> tuple[Line, ...]:
    added = (layer for layer in report.layers if layer.added)
    return tuple(Line(name=visible(layer.name), words=_addition(layer)) for layer in added)


def _addition(layer: ReportLayer) -> str:
    does = f"layer {layer.index}: {layer.added}"
    if not layer.outputs:
        return does
    return f"{does}, {tensors_words(layer)}, {format_bytes(layer.bytes)}"


def _sites_title(report: Report) -> str:
    totals = report.totals
    plugins = sum(site.outcome == "plugin" for site in report.sites)
    by_plugin = f", {plugins:,} by a plugin" if plugins else ""
    return f"Sites: {totals.sites_fused:,} of {totals.sites:,} fused into one layer{by_plugin}"


def _sites(report: Report) -> tuple[Line, ...]:
    """Those that are neither fused nor a plugin."""
    numbers: dict[str, int] = {}
    for layer in report.layers:
        numbers.setdefault(layer.name, layer.index)
    return tuple(
        Line(name=visible(site.conv), words=_site(site, numbers))
        for site in report.sites
        if site.outcome in ("native_unfused", "unknown")
    )


def _site(site: ReportSite, numbers: dict[str, int]) -> str:
    layers = ", ".join(str(numbers[name]) for name in site.layers if name in numbers)
    outcome = OUTCOMES[site.outcome] + (f" ({layers})" if layers else "")
    parts = (site_words(site), outcome, visible(site.why))
    return "; ".join(parts if site.why else parts[:2])


def _choices(report: Report) -> tuple[Section, ...]:
    """What was planned for each site, where the backend takes plugins: one section, or none."""
    known = [(site, site.choice) for site in report.sites if site.choice is not None]
    if not known:
        return ()
    ours = [(site, choice) for site, choice in known if choice.choice == "plugin"]
    kept = sum(site.outcome == "plugin" for site, _ in ours)
    title = f"Plugin: planned for {len(ours):,} of {plural(len(known), 'site')}, {kept:,} kept"
    reasons = Counter(choice.reason for _, choice in known if choice.choice == "native")
    native = (
        Line(name="", words=f"{count:,} native: {visible(reason)}")
        for reason, count in reasons.most_common()
    )
    lines = (Line(name=visible(site.conv), words=_choice(site, choice)) for site, choice in ours)
    return (Section(title=title, lines=(*lines, *native)),)


def _choice(site: ReportSite, choice: ReportChoice) -> str:
    kept = "" if site.outcome == "plugin" else "NOT IN THE ENGINE; "
    before, after = len(choice.reformats_before), len(choice.reformats_after)
    moved = f"{plural(before, 'reformat')} before, {after:,} after"
    return f"{kept}{choice_words(choice)}; {moved}; {visible(choice.reason)}"


def _near_misses(report: Report) -> tuple[Line, ...]:
    return tuple(
        Line(name=visible(reason), words=f"{count:,}")
        for reason, count in near_misses_by_reason(report)
    )


def _islands(report: Report) -> tuple[Line, ...]:
    return tuple(
        Line(name=visible(i.node), words=f"{visible(i.op_type)}: {visible(i.reason)}")
        for i in report.islands
    )


ASKED = ("pin", "ban", "prefer")
"""What of `selected_by` overrules the builder."""


def _asked_title(report: Report) -> str:
    count = sum(layer.selected_by in ASKED for layer in report.layers)
    return f"Tactics that were asked for, against the builder's choice: {count:,}"


def _asked(report: Report) -> tuple[Line, ...]:
    return tuple(
        Line(
            name=visible(layer.name),
            words=f"layer {layer.index} --{layer.selected_by}: {kernel_words(layer)}, "
            f"margin {format_margin(layer.margin)}",
        )
        for layer in report.layers
        if layer.selected_by in ASKED
    )


def _near_ties_title(report: Report) -> str:
    count = sum(layer.near_tie is True for layer in report.layers)
    return f"Near ties: {count:,} (by the builder's own timing of single kernels)"


def _near_ties(report: Report) -> tuple[Line, ...]:
    """Layers for which another build may take another kernel, the closest first."""
    near = sorted((x for x in report.layers if x.near_tie), key=lambda layer: layer.margin or 0.0)
    return tuple(Line(name=visible(layer.name), words=_near_tie(layer)) for layer in near)


def _near_tie(layer: ReportLayer) -> str:
    chosen = next((c for c in layer.candidates if c.chosen), None)
    other = next((c for c in layer.candidates if not c.chosen and c.time_us is not None), None)
    if chosen is None or other is None:
        return f"layer {layer.index}: {format_margin(layer.margin)}"
    return (
        f"layer {layer.index}: {format_margin(layer.margin)} to {visible(other.kernel)} "
        f"({format_us(chosen.time_us)} and {format_us(other.time_us)} µs)"
    )


def _unjoined_title(report: Report) -> str:
    return f"Candidates of no certain layer: {len(report.unjoined_candidates):,}"


def _unjoined(report: Report) -> tuple[Line, ...]:
    return tuple(
        Line(name=visible(t.op), words=f"{plural(len(t.candidates), 'candidate')}; {t.why}")
        for t in report.unjoined_candidates
    )


def _plain(lines: tuple[str, ...]) -> tuple[Line, ...]:
    return tuple(Line(name="", words=visible(line)) for line in lines)
