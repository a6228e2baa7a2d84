"""Makes the report of one engine from the builder's listing and the model's facts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.layer_listing import Listing
from trtplug.backends.tactic_table import CandidateTable
from trtplug.model.external import tensors_of
from trtplug.profile import GpuProfile
from trtplug.report.bounds import ASSUMPTIONS
from trtplug.report.candidates import Joined, join_tables, unjoined_candidates
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
    ReportTimingCache,
    ReportTotals,
    ReportTypeShare,
    SelectedBy,
)
from trtplug.report.layers import LayerContext, report_layers
from trtplug.report.model_facts import ModelFacts
from trtplug.report.sites import plugin_warnings, report_near_misses, report_sites, stands_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.plugin.offer import PluginOffer  # noqa: TC004
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What one report is made from."""

    facts: ModelFacts
    listing: Listing | None
    """None where the builder gave no usable one."""
    names: Mapping[str, str]
    """The builder's name of an ONNX node -> its label."""
    target: str
    backend: str
    backend_version: str
    profiles: tuple[GpuProfile, ...]
    engine: ReportEngine
    precision: str
    islands: tuple[ReportIsland, ...]
    flags: Mapping[str, str]
    environment: Mapping[str, str]
    warnings: tuple[str, ...]
    tables: tuple[CandidateTable, ...] = ()
    """What the builder tried, where its log tells."""
    selected_by: Mapping[str, SelectedBy] = field(default_factory=dict)
    """Cache key -> who decided its tactic, where it was not the builder."""
    cache: ReportTimingCache | None = None
    """None where the builder has no timing cache."""
    offer: PluginOffer | None = None
    """Which sites were to get the plugin; None where the backend takes none."""
    kernels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Site of a kit -> numbers of the tactics whose kernels the engine holds."""
    ran: tuple[str, ...] = (NOT_RUN,)
    """Whether the engine was run, and what else its figures rest on."""


def make_report(inputs: ReportInputs) -> Report:
    """The report."""
    facts = inputs.facts
    joined = join_tables(inputs.listing.layers if inputs.listing else (), inputs.tables)
    layers = _layers(inputs, joined)
    sites = report_sites(facts, layers, inputs.offer, inputs.kernels)
    near_misses = report_near_misses(facts, layers)
    counted = _of_first_profile(layers, inputs.listing)
    return Report(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=_model(inputs),
        target=inputs.target,
        backend=inputs.backend,
        backend_version=inputs.backend_version,
        gpus=tuple(ReportGpu(profile=p.name, gpu=p.gpu, sm=str(p.sm)) for p in inputs.profiles),
        shapes=_shapes(facts),
        engine=inputs.engine,
        flags=inputs.flags,
        environment=inputs.environment,
        layers=layers,
        unjoined_candidates=unjoined_candidates(joined, inputs.names, inputs.selected_by),
        timing_cache=inputs.cache,
        sites=sites,
        near_misses=near_misses,
        islands=inputs.islands,
        onnx_nodes={label: node.op_type for label, node in facts.nodes.items()},
        totals=report_totals(counted, sites, near_misses),
        assumptions=(*inputs.ran, *_about_profiles(layers, counted), *ASSUMPTIONS),
        warnings=(
            *inputs.warnings,
            *_warnings(inputs),
            *plugin_warnings(sites, layers, inputs.offer),
        ),
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


def _layers(inputs: ReportInputs, joined: Joined) -> tuple[ReportLayer, ...]:
    if inputs.listing is None:
        return ()
    context = LayerContext(
        listing=inputs.listing,
        names=inputs.names,
        facts=inputs.facts,
        profiles=inputs.profiles,
        tf32=inputs.flags.get("tf32") == "on",
        joined=joined,
        selected_by=inputs.selected_by,
        plugins=stands_for(inputs.facts, inputs.offer),
    )
    return report_layers(context)


def _model(inputs: ReportInputs) -> ReportModel:
    model = inputs.facts.model
    return ReportModel(
        file=model.path.name,
        sha256=model.sha256,
        ir_version=model.ir_version,
        opset=model.opset,
        producer=f"{model.proto.producer_name} {model.proto.producer_version}".strip(),
        nodes=len(inputs.facts.nodes),
        parameters=sum(math.prod(t.dims) for t in tensors_of(model.proto)),
        precision=inputs.precision,
    )


def _shapes(facts: ModelFacts) -> tuple[ReportShape, ...]:
    dtypes = {spec.name: spec.dtype for spec in facts.model.inputs}
    return tuple(
        ReportShape(name=r.name, dtype=dtypes[r.name], min=r.min, opt=r.opt, max=r.max)
        for r in facts.ranges
    )


def _warnings(inputs: ReportInputs) -> tuple[str, ...]:
    if inputs.listing is None:
        return ("The builder gave no layer listing; the report has no layers.",)
    if inputs.listing.unparsed:
        lost = inputs.listing.unparsed
        return (f"{lost} entries of the builder's layer listing could not be read.",)
    return ()
