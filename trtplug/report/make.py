"""Makes the report of one engine from the builder's listing and the model's facts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.backend import Outcome
from trtplug.backends.layer_listing import Listing
from trtplug.model.external import tensors_of
from trtplug.model.source import Source
from trtplug.plan import Plan, PlannedTarget
from trtplug.profile import GpuProfile, find_profile
from trtplug.report.bounds import ASSUMPTIONS, known_sum
from trtplug.report.candidates import Tactics, join_tables, report_timing_cache, unjoined_candidates
from trtplug.report.data import (
    NOT_RUN,
    SCHEMA,
    Report,
    ReportEngine,
    ReportGpu,
    ReportIsland,
    ReportLayer,
    ReportModel,
    ReportShape,
    ReportTotals,
    ReportTypeShare,
)
from trtplug.report.layers import LayerContext, report_layers
from trtplug.report.model_facts import ModelFacts
from trtplug.report.sites import plugin_warnings, replaced_nodes, report_near_misses, report_sites

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trtplug.plugin.units import PluginOffer  # noqa: TC004
    from trtplug.report.data import ReportNearMiss, ReportSite


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
    sums: dict[str, float] = defaultdict(float)
    for layer in layers:
        for profile, bound in layer.bound_us.items():
            sums[profile] += bound
    return dict(sums)


def _by_type(layers: tuple[ReportLayer, ...]) -> tuple[ReportTypeShare, ...]:
    groups: dict[str, list[ReportLayer]] = defaultdict(list)
    for layer in layers:
        groups[layer.type].append(layer)
    shares = (
        ReportTypeShare(
            type=kind,
            layers=len(group),
            flops=known_sum(layer.flops for layer in group),
            bytes=known_sum(layer.bytes for layer in group),
            bound_us=_bounds(group),
        )
        for kind, group in groups.items()
    )
    return tuple(sorted(shares, key=lambda s: (-max(s.bound_us.values(), default=0.0), s.type)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What one report is made from."""

    plan: Plan
    target: PlannedTarget
    source: Source
    facts: ModelFacts
    outcome: Outcome
    engine: ReportEngine
    listing: Listing | None
    """None where the builder gave no usable one."""
    profiles: tuple[GpuProfile, ...]
    """All of them."""
    tactics: Tactics
    offer: PluginOffer | None
    """Which sites were to get the plugin; None where the backend takes none."""
    kernels: Mapping[str, tuple[int, ...]]
    """Site of a kit -> numbers of the tactics whose kernels the engine holds."""
    environment: Mapping[str, str]
    """Where the engine was built."""
    reproducible: bool
    """Whether the builder gives the same bytes again."""


def make_report(inputs: ReportInputs) -> Report:
    """The report."""
    plan, facts, tactics, offer = inputs.plan, inputs.facts, inputs.tactics, inputs.offer
    model, names = facts.model, inputs.source.prepared.names
    profiles = tuple(
        p for name in inputs.target.gpus if (p := find_profile(name, inputs.profiles)) is not None
    )
    joined = join_tables(inputs.listing.layers if inputs.listing else (), tactics.tables)
    selected_by = tactics.selected_by()
    dtypes = {spec.name: spec.dtype for spec in model.inputs}
    layers: tuple[ReportLayer, ...] = ()
    if inputs.listing is not None:
        context = LayerContext(
            listing=inputs.listing,
            names=names,
            facts=facts,
            profiles=profiles,
            tf32=plan.flags.get("tf32") == "on",
            joined=joined,
            selected_by=selected_by,
            plugins=replaced_nodes(facts, offer),
        )
        layers = report_layers(context)
    sites = report_sites(facts, layers, offer, inputs.kernels)
    near_misses = report_near_misses(facts, layers)
    counted = _of_first_profile(layers, inputs.listing)
    return Report(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=ReportModel(
            file=model.path.name,
            sha256=model.sha256,
            ir_version=model.ir_version,
            opset=model.opset,
            producer=f"{model.proto.producer_name} {model.proto.producer_version}".strip(),
            nodes=len(facts.nodes),
            parameters=sum(math.prod(t.dims) for t in tensors_of(model.proto)),
            precision=plan.precision,
        ),
        target=inputs.target.target,
        backend=plan.backend,
        backend_version=inputs.outcome.builder_version,
        gpus=tuple(ReportGpu(profile=p.name, gpu=p.gpu, sm=str(p.sm)) for p in profiles),
        shapes=tuple(
            ReportShape(name=r.name, dtype=dtypes[r.name], min=r.min, opt=r.opt, max=r.max)
            for r in facts.ranges
        ),
        engine=inputs.engine,
        flags=plan.flags,
        environment=inputs.environment,
        layers=layers,
        unjoined_candidates=unjoined_candidates(joined, names, selected_by),
        timing_cache=report_timing_cache(tactics.cache, tactics.hits),
        sites=sites,
        near_misses=near_misses,
        islands=tuple(
            ReportIsland(node=i.node, op_type=i.op_type, reason=i.reason)
            for i in inputs.source.islands
        ),
        onnx_nodes={label: node.op_type for label, node in facts.nodes.items()},
        totals=report_totals(counted, sites, near_misses),
        assumptions=(*_ran(inputs), *_about_profiles(layers, counted), *ASSUMPTIONS),
        warnings=(
            *_warnings(inputs),
            *_unaccounted(facts, layers),
            *plugin_warnings(sites, layers, offer),
        ),
    )


_SHOWN = 5
"""Nodes named where some are in no layer."""


def _unaccounted(facts: ModelFacts, layers: tuple[ReportLayer, ...]) -> Iterator[str]:
    """Nodes that compute and that no layer names: the totals lack their operations."""
    if not layers:
        return
    named = {node for layer in layers for node in layer.onnx_nodes}
    flops = {label: facts.flops(label) or 0 for label in facts.nodes if label not in named}
    lost = sorted((label for label in flops if flops[label]), key=lambda n: -flops[n])
    if not lost:
        return
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    yield (
        f"{len(lost)} ONNX nodes with {sum(flops.values()):,} floating-point operations are named "
        f"by no layer, so the total lacks them: {', '.join(lost[:_SHOWN])}{more}."
    )


def _of_first_profile(
    layers: tuple[ReportLayer, ...], listing: Listing | None
) -> tuple[ReportLayer, ...]:
    """An engine has every layer again for each further profile; a run uses those of one."""
    given = listing.layers if listing else ()
    return tuple(row for row, layer in zip(layers, given, strict=True) if layer.profile == 0)


def _about_profiles(
    layers: tuple[ReportLayer, ...], counted: tuple[ReportLayer, ...]
) -> tuple[str, ...]:
    others = len(layers) - len(counted)
    if not others:
        return ()
    return (
        f"Totals are of the first profile, at its opt shapes: {others} layers of further profiles "
        "are listed and not added.",
    )


def _ran(inputs: ReportInputs) -> tuple[str, ...]:
    """What is known of the engine's runs, and how far its kernels can be relied on."""
    ran = inputs.outcome.trial or NOT_RUN
    if inputs.reproducible:
        return (ran,)
    if inputs.tactics.locked:
        return (ran, "Kernels are those of the lock; nothing was timed in this build.")
    return (ran, "Kernels were chosen by timing them: another build may choose others.")


def _warnings(inputs: ReportInputs) -> Iterator[str]:
    yield from inputs.facts.warnings
    yield from inputs.source.prepared.repairs
    yield from inputs.outcome.warnings
    yield from inputs.tactics.warnings
    if inputs.reproducible and not inputs.outcome.aslr_off:
        yield (
            "Address-space randomisation could not be turned off here: "
            "another build may have other bytes."
        )
    if inputs.listing is None:
        yield "The builder gave no layer listing; the report has no layers."
    elif lost := inputs.listing.unparsed:
        yield f"{lost} entries of the builder's layer listing could not be read."
