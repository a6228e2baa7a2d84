"""Sums over the layers of a report."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from trtplug.report.report import ReportTotals, ReportTypeShare

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.report.report import ReportLayer, ReportNearMiss, ReportSite


def report_totals(
    layers: tuple[ReportLayer, ...],
    sites: tuple[ReportSite, ...],
    near_misses: tuple[ReportNearMiss, ...],
) -> ReportTotals:
    """Totals; figures that a layer does not know are left out of the sum and counted."""
    statuses = Counter(layer.kernel_status for layer in layers)
    added = Counter(layer.added for layer in layers)
    return ReportTotals(
        layers=len(layers),
        flops=sum(layer.flops or 0 for layer in layers),
        bytes=sum(layer.bytes or 0 for layer in layers),
        layers_without_flops=sum(layer.flops is None for layer in layers),
        layers_without_bytes=sum(layer.bytes is None for layer in layers),
        kernels_chosen=statuses["chosen"],
        kernels_at_first_run=statuses["chosen_at_first_run"],
        kernels_unknown=statuses["unknown"],
        added_reformats=added["reformat"],
        added_casts=added["cast"],
        added_copies=added["copy"],
        sites=len(sites),
        sites_fused=sum(site.outcome == "native_fused" for site in sites),
        near_misses=len(near_misses),
        bound_us=_bounds(layers),
        by_type=_by_type(layers),
        layers_by_dtype=dict(Counter(x.outputs[0].dtype for x in layers if x.outputs)),
    )


def _bounds(layers: Iterable[ReportLayer]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for layer in layers:
        for profile, bound in layer.bound_us.items():
            sums[profile] = sums.get(profile, 0.0) + bound
    return sums


def _by_type(layers: tuple[ReportLayer, ...]) -> tuple[ReportTypeShare, ...]:
    groups: dict[str, list[ReportLayer]] = {}
    for layer in layers:
        groups.setdefault(layer.type, []).append(layer)
    shares = (
        ReportTypeShare(
            type=kind,
            layers=len(group),
            flops=_sum(layer.flops for layer in group),
            bytes=_sum(layer.bytes for layer in group),
            bound_us=_bounds(group),
        )
        for kind, group in groups.items()
    )
    return tuple(sorted(shares, key=lambda s: (-max(s.bound_us.values(), default=0.0), s.type)))


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(v or 0 for v in known)
