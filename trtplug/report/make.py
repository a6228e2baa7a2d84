"""Makes the report of one engine from the builder's listing and the model's facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.log import Listing
from trtplug.backends.tactic_table import CandidateTable
from trtplug.model.external import tensors_of
from trtplug.profile import GpuProfile
from trtplug.report.bounds import ASSUMPTIONS
from trtplug.report.candidates import (
    Joined,
    join_tables,
    unjoined_candidates,
)
from trtplug.report.choices import plugin_warnings, stands_for
from trtplug.report.layers import LayerContext, report_layers
from trtplug.report.model_facts import ModelFacts
from trtplug.report.report import (
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
    SelectedBy,
)
from trtplug.report.sites import report_near_misses, report_sites
from trtplug.report.totals import report_totals

if TYPE_CHECKING:
    # It loads the tactics, which most builds have no use for.
    from trtplug.offer.offer import PluginOffer  # noqa: TC004


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
        totals=report_totals(layers, sites, near_misses),
        assumptions=(*inputs.ran, *ASSUMPTIONS),
        warnings=(
            *inputs.warnings,
            *_warnings(inputs),
            *plugin_warnings(sites, layers, inputs.offer),
        ),
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
