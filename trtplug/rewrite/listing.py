"""Sites, near misses and pairs, their sizes, operations and bytes: what `trtplug sites` shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.model.flops import node_flops
from trtplug.model.graph import node_labels
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.model.load import Model
    from trtplug.model.shapes import ShapeTable
    from trtplug.rewrite.find import Found
    from trtplug.rewrite.site import Pair, Site
    from trtplug.tensor import Sizes

SCHEMA = "trtplug.sites/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEntry:
    """One site. Figures are None where a size is not known."""

    conv: str
    nodes: tuple[str, ...]
    folded: tuple[str, ...]
    activation: str
    alpha: float
    beta: float
    min: float | None
    """Lower bound of clip; None where there is none."""
    max: float | None
    residual: str
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    group: int
    channels: int
    dtype: str
    input: str
    input_dims: tuple[int, ...] | None
    output: str
    output_dims: tuple[int, ...] | None
    flops: int | None
    """Of all its nodes, by the conventions of `trtplug.model.flops`."""
    conv_flops: int | None
    """Of the convolution alone."""
    bytes: int | None
    """Input, weight, bias, residual and output, each once."""
    stop: str | None
    """Why it does not reach further: a reason code."""
    stop_node: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMissEntry:
    """A convolution that is no site."""

    conv: str
    reason: str
    node: str
    flops: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairEntry:
    """A depthwise site and the pointwise one that alone reads it."""

    depthwise: str
    """Label of its convolution; the site is in `sites`."""
    pointwise: str
    between: str
    """Tensor that one kernel for both need not write."""
    between_dims: tuple[int, ...] | None
    bytes_saved: int | None
    """Written once and read once by two kernels; None where a size is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMissEntry:
    """A site with groups that is not the first of a pair."""

    conv: str
    reason: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesTotals:
    """Sums; `covered` is None where a convolution's operations are unknown."""

    convolutions: int
    sites: int
    near_misses: int
    conv_flops: int | None
    covered: float | None
    """Share of the model's convolution operations that is in sites, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SitesListing:
    """The document behind `trtplug sites`."""

    schema: str
    model: str
    sha256: str
    sites: tuple[SiteEntry, ...]
    near_misses: tuple[NearMissEntry, ...]
    pairs: tuple[PairEntry, ...]
    pair_near_misses: tuple[PairMissEntry, ...]
    totals: SitesTotals
    notices: tuple[str, ...]


def list_sites(
    model: Model,
    found: Found,
    shapes: ShapeTable,
    notices: Sequence[str] = (),
) -> SitesListing:
    """Joins what a search found with sizes."""
    nodes = node_labels(model.proto.graph)
    flops = {label: node_flops(node, shapes) for label, node in nodes.items()}
    entries = tuple(_entry(site, flops, shapes) for site in found.sites)
    misses = tuple(
        NearMissEntry(conv=m.conv, reason=m.reason.value, node=m.node, flops=flops.get(m.conv))
        for m in found.near_misses
    )
    return SitesListing(
        schema=SCHEMA,
        model=model.path.name,
        sha256=model.sha256,
        sites=entries,
        near_misses=misses,
        pairs=tuple(_pair(pair, shapes) for pair in found.pairs),
        pair_near_misses=tuple(
            PairMissEntry(conv=m.conv, reason=m.reason.value, node=m.node)
            for m in found.pair_near_misses
        ),
        totals=_totals(entries, misses),
        notices=tuple(notices),
    )


def _entry(site: Site, flops: dict[str, int | None], shapes: ShapeTable) -> SiteEntry:
    return SiteEntry(
        conv=site.conv,
        nodes=site.nodes,
        folded=site.folded,
        activation=site.activation,
        alpha=site.alpha,
        beta=site.beta,
        min=_finite(site.minimum),
        max=_finite(site.maximum),
        residual=site.residual,
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        pads=site.pads,
        dilations=site.dilations,
        group=site.group,
        channels=site.channels,
        dtype=site.dtype,
        input=site.input,
        input_dims=shapes.dims(site.input),
        output=site.output,
        output_dims=shapes.dims(site.output),
        flops=_sum([flops.get(n) for n in site.nodes]),
        conv_flops=flops.get(site.conv),
        bytes=_bytes(site, shapes),
        stop=None if site.stop is None else str(site.stop),
        stop_node=None if site.stop is None else site.stop.node,
    )


def _pair(pair: Pair, shapes: ShapeTable) -> PairEntry:
    between = pair.depthwise.output
    dims = shapes.dims(between)
    size = element_type(pair.depthwise.dtype).bytes
    return PairEntry(
        depthwise=pair.depthwise.conv,
        pointwise=pair.pointwise.conv,
        between=between,
        between_dims=dims,
        bytes_saved=None if dims is None else 2 * size * math.prod(dims),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _sum(values: Sequence[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _bytes(site: Site, shapes: ShapeTable) -> int | None:
    size = element_type(site.dtype).bytes
    inputs, outputs = shapes.dims(site.input), shapes.dims(site.output)
    if inputs is None or outputs is None:
        return None
    taps = math.prod(site.kernel_shape) * site.channels_per_group
    residual: Sizes = () if site.residual == "none" else outputs
    elements = math.prod(inputs) + math.prod(outputs) + site.channels * (taps + 1)
    return size * (elements + (math.prod(residual) if residual else 0))


def _totals(sites: Sequence[SiteEntry], misses: Sequence[NearMissEntry]) -> SitesTotals:
    inside = _sum([s.conv_flops for s in sites])
    outside = _sum([m.flops for m in misses])
    total = None if inside is None or outside is None else inside + outside
    return SitesTotals(
        convolutions=len(sites) + len(misses),
        sites=len(sites),
        near_misses=len(misses),
        conv_flops=total,
        covered=inside / total if inside is not None and total else None,
    )
