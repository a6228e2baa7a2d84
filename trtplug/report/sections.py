"""The lists below the table of layers, as the terminal and Markdown show them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.report.heading import OUTCOMES, added_counts, choice_words, plural, site_words
from trtplug.report.rows import kernel_words, tensors_words
from trtplug.report.words import format_bytes, format_margin, format_us, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """What the builder added, sites, near misses; the rest where there is any of it."""
    numbers: dict[str, int] = {}
    for layer in report.layers:
        numbers.setdefault(layer.name, layer.index)
    reasons = Counter(miss.reason for miss in report.near_misses)
    added = [_about(x, _addition(x)) for x in report.layers if x.added]
    # Those that are neither fused nor a plugin.
    split = (s for s in report.sites if s.outcome in ("native_unfused", "unknown"))
    misses = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    islands = [_line(i.node, f"{visible(i.op_type)}: {visible(i.reason)}") for i in report.islands]
    overridden = [_about(x, _overridden(x)) for x in report.layers if x.selected_by in OVERRIDES]
    # Layers for which another build may take another kernel, the closest first.
    near = sorted((x for x in report.layers if x.near_tie), key=lambda layer: layer.margin or 0.0)
    unjoined = [
        _line(t.op, f"{plural(len(t.candidates), 'candidate')}; {t.why}")
        for t in report.unjoined_candidates
    ]
    optional = (
        (f"Kept in float32: {len(islands):,}", islands),
        (f"Tactics overridden by --pin, --ban or --prefer: {len(overridden):,}", overridden),
        (
            f"Near ties: {len(near):,} (by the builder's own timing of single kernels)",
            [_about(x, _near_tie(x)) for x in near],
        ),
        (f"Candidate tables without a layer: {len(unjoined):,}", unjoined),
        ("Warnings", [Line(name="", words=visible(line)) for line in report.warnings]),
    )
    found = (
        (f"Added by the builder: {added_counts(report)}", added),
        (_sites_title(report), [_line(s.conv, _site(s, numbers)) for s in split]),
        *_choices(report),
        (
            f"Near misses: {report.totals.near_misses:,}",
            [_line(reason, f"{count:,}") for reason, count in misses],
        ),
        *((title, lines) for title, lines in optional if lines),
    )
    return tuple(Section(title=title, lines=tuple(lines)) for title, lines in found)


def _line(name: str, words: str) -> Line:
    return Line(name=visible(name), words=words)


def _about(layer: ReportLayer, words: str) -> Line:
    return _line(layer.name, f"layer {layer.index}{words}")


def _addition(layer: ReportLayer) -> str:
    does = f": {layer.added}"
    if not layer.outputs:
        return does
    return f"{does}, {tensors_words(layer)}, {format_bytes(layer.bytes)}"


def _sites_title(report: Report) -> str:
    totals = report.totals
    plugins = sum(site.outcome == "plugin" for site in report.sites)
    by_plugin = f", {plugins:,} by a plugin" if plugins else ""
    return f"Sites: {totals.sites_fused:,} of {totals.sites:,} fused into one layer{by_plugin}"


def _site(site: ReportSite, numbers: dict[str, int]) -> str:
    layers = ", ".join(str(numbers[name]) for name in site.layers if name in numbers)
    outcome = OUTCOMES[site.outcome] + (f" ({layers})" if layers else "")
    parts = (site_words(site), outcome, visible(site.why))
    return "; ".join(parts if site.why else parts[:2])


def _choices(report: Report) -> Iterator[tuple[str, list[Line]]]:
    """What was planned for each site, where the backend takes plugins: one section, or none."""
    known = [(site, site.choice) for site in report.sites if site.choice is not None]
    if not known:
        return
    ours = [(site, choice) for site, choice in known if choice.choice == "plugin"]
    kept = sum(site.outcome == "plugin" for site, _ in ours)
    reasons = Counter(choice.reason for _, choice in known if choice.choice == "native")
    lines = [_line(site.conv, _choice(site, choice)) for site, choice in ours]
    lines += (
        Line(name="", words=f"{count:,} native: {visible(reason)}")
        for reason, count in reasons.most_common()
    )
    yield f"Plugin: planned for {len(ours):,} of {plural(len(known), 'site')}, {kept:,} kept", lines


def _choice(site: ReportSite, choice: ReportChoice) -> str:
    kept = "" if site.outcome == "plugin" else "NOT IN THE ENGINE; "
    before, after = len(choice.reformats_before), len(choice.reformats_after)
    moved = f"{plural(before, 'reformat')} before, {after:,} after"
    return f"{kept}{choice_words(choice)}; {moved}; {visible(choice.reason)}"


OVERRIDES = ("pin", "ban", "prefer")
"""Values of `selected_by` that override the builder."""


def _overridden(layer: ReportLayer) -> str:
    margin = format_margin(layer.margin)
    return f" --{layer.selected_by}: {kernel_words(layer)}, margin {margin}"


def _near_tie(layer: ReportLayer) -> str:
    margin = format_margin(layer.margin)
    chosen = next((c for c in layer.candidates if c.chosen), None)
    other = next((c for c in layer.candidates if not c.chosen and c.time_us is not None), None)
    if chosen is None or other is None:
        return f": {margin}"
    times = f"{format_us(chosen.time_us)} and {format_us(other.time_us)} µs"
    return f": {margin} to {visible(other.kernel)} ({times})"
