"""The report as data: every engine layer, every site, totals, and what was assumed.

Frozen and plain, so that one value serves the JSON document, its published schema and each
renderer. A figure that was neither measured nor derived from a stated formula is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trtplug.timing.accounting import CacheWord

SCHEMA = "trtplug.report/1"

NOT_RUN = "The engine was not loaded or run where it was built: loading it needs a GPU."
"""Assumption for an engine that was not run: the first of `assumptions` then."""

KernelStatus = Literal["chosen", "chosen_at_first_run", "none", "unknown"]
"""`chosen`: the builder named it. `chosen_at_first_run`: a stub, the GPU decides when the engine
first runs. `none`: the layer touches no tensor (it synchronises streams, or computes shapes).
`unknown`: the builder does not report it."""

SiteOutcome = Literal["plugin", "native_fused", "native_unfused", "unknown"]
"""`native_fused`: all of the site's nodes became one layer. `unknown`: they are in no layer."""

SiteChoice = Literal["plugin", "native"]

Added = Literal["reformat", "cast", "copy", "fill", "sync", "other"]
"""What a layer that holds no ONNX node does: another layout, another type, neither of the two;
`fill`: it makes a constant, from no input; `sync`: it touches no tensor; `other`: it has several
inputs or outputs, or holds weights; what it computes is not known."""

BoundBy = Literal["memory", "matrix", "vector"]

TimedBy = Literal["builder", "cache", "prediction"]
"""`builder`: measured by the builder while it built, the kernel alone. `cache`: taken from the
timing cache, as a builder measured it when the cache was made. `prediction`: computed by trtplug
from the kernel and the GPU's profile, not measured."""

SelectedBy = Literal["builder", "pin", "ban", "prefer", "lock"]
"""Who decided a tactic: the builder, by its own timing in this build; an option (`--pin`, `--ban`,
`--prefer`) against the builder's choice; or the lock that was replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportModel:
    """The model that came in."""

    file: str
    """File name, without its folder."""
    sha256: str
    """Digest of the file, and of its external data where it has any."""
    ir_version: int
    opset: int
    producer: str
    nodes: int
    parameters: int | None
    """Number of elements in initializers and in tensors of Constant nodes."""
    precision: str
    """The `--precision` option: `keep`, `fp16` or `bf16`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportShape:
    """One input and the sizes it may take; all three are equal where it is not dynamic."""

    name: str
    dtype: str
    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEngine:
    """The engine file."""

    file: str
    bytes: int
    sha256: str
    canonical_sha256: str
    """Digest with the counters in generated names renumbered in order of appearance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTensor:
    """A tensor at the border of a layer."""

    name: str
    dims: tuple[int, ...]
    """As the builder gives them; -1 is dynamic."""
    dims_at_opt: tuple[int, ...] | None
    """At the opt shapes; None where they could not be derived."""
    dtype: str
    format: str
    bytes: int | None
    """At the opt shapes, without padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCandidate:
    """A tactic that was tried for a layer."""

    kernel: str
    time_us: float | None
    """Of this kernel alone; no time of the engine. See `timed_by`."""
    ratio: float | None
    """Its time over that of the fastest candidate."""
    tactic_hash: str | None
    chosen: bool
    """Whether the builder took it."""
    timed_by: TimedBy | None
    """None where there is no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLayer:
    """One layer of the engine."""

    index: int
    name: str
    type: str
    """The builder's word, such as `correlation` (a convolution), `kgen`, `gemm`."""
    onnx_nodes: tuple[str, ...]
    """Labels of the ONNX nodes in it."""
    inputs: tuple[ReportTensor, ...]
    constants: tuple[ReportTensor, ...]
    outputs: tuple[ReportTensor, ...]
    kernel: str | None
    kernel_status: KernelStatus
    candidates: tuple[ReportCandidate, ...]
    """Empty where the builder tries none, or does not report them; the fastest first."""
    margin: float | None
    """By which part the fastest other candidate is slower than the chosen one; negative where a
    slower one was taken. None where either has no time."""
    near_tie: bool | None
    """Whether the margin is below 5 %, so that another build may choose otherwise."""
    selected_by: SelectedBy | None
    """Who decided the tactic; None where there are no candidates."""
    cache_key: str | None
    """Of the layer in the timing cache."""
    time_us: float | None
    """Measured; None where it was not."""
    flops: int | None
    """Of its ONNX nodes at the opt shapes; a multiply-add counts 2."""
    bytes: int | None
    """Inputs, constants and outputs, each once."""
    intensity: float | None
    """Floating-point operations a byte."""
    bound_us: Mapping[str, float]
    """GPU profile -> lower bound on the time that this GPU sets (roofline); no measurement."""
    bound_by: Mapping[str, BoundBy]
    """GPU profile -> what sets the bound."""
    added: Added | None
    """Set where the builder added the layer: it holds no ONNX node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoice:
    """What was planned for a site, and what the engine made of it."""

    choice: SiteChoice
    """What was planned before the build; `ReportSite.outcome` has the result."""
    reason: str
    pair: str | None
    """Label of the pair whose one kernel takes the site; None where it has a kernel of its own."""
    tactics: tuple[str, ...]
    """Offered to the builder; empty where native."""
    tactic: str | None
    """The one that the builder took; None where native, or where it does not report it."""
    kernel_sha256: str | None
    """Digest of that tactic's PTX."""
    kit_sha256: str | None
    """Digest of all that was offered: problem, packing, and the PTX of each tactic."""
    reformats_before: tuple[str, ...]
    """Names of the layers without an ONNX node whose result the plugin's layer reads."""
    reformats_after: tuple[str, ...]
    """Names of the layers without an ONNX node that read its result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSite:
    """A convolution with its bias and activation, and what became of it."""

    conv: str
    nodes: tuple[str, ...]
    """Labels of all its ONNX nodes, the convolution's among them."""
    activation: str
    residual: str
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    group: int
    flops: int | None
    outcome: SiteOutcome
    layers: tuple[str, ...]
    """Names of the engine layers its nodes fell into."""
    why: str
    choice: ReportChoice | None
    """None where the backend takes no plugins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportNearMiss:
    """A convolution that is no site."""

    conv: str
    reason: str
    node: str
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportIsland:
    """An ONNX node that `--precision` left in float32."""

    node: str
    op_type: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTypeShare:
    """All layers of one type together."""

    type: str
    layers: int
    flops: int | None
    bytes: int | None
    bound_us: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTotals:
    """Sums over the layers whose figures are known; others are counted."""

    layers: int
    flops: int
    bytes: int
    layers_without_flops: int
    layers_without_bytes: int
    kernels_chosen: int
    kernels_at_first_run: int
    kernels_unknown: int
    added_reformats: int
    added_casts: int
    added_copies: int
    sites: int
    sites_fused: int
    near_misses: int
    bound_us: Mapping[str, float]
    by_type: tuple[ReportTypeShare, ...]
    layers_by_dtype: Mapping[str, int]
    """Type of the first output -> number of layers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportGpu:
    """A GPU that the engine serves."""

    profile: str
    gpu: str
    sm: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCandidateTable:
    """Candidates that belong to no one layer for certain."""

    op: str
    """As the builder's log calls it."""
    cache_key: str
    onnx_nodes: tuple[str, ...]
    candidates: tuple[ReportCandidate, ...]
    margin: float | None
    near_tie: bool | None
    selected_by: SelectedBy
    why: str
    """Why no layer has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTimingCache:
    """How the build used its timing cache."""

    word: CacheWord
    reason: str
    """Why it was rejected, or could not be merged; empty otherwise."""
    set_aside: str | None
    """Name of what was rejected, in the store's folder `set-aside`."""
    keys_before: int
    keys_after: int
    hits: int | None
    """Keys that the build looked up and found; None where its lookups are not known."""
    misses: int
    """Keys that the build timed anew."""
    lost: int
    changed: int
    """Keys whose winner the build changed."""
    sha256: str | None
    """Of what the store held afterwards; None where the build's cache was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that is known of one engine."""

    schema: str
    tool_version: str
    model: ReportModel
    target: str
    """Such as `rtx-1.7:sm_89`."""
    backend: str
    backend_version: str
    gpus: tuple[ReportGpu, ...]
    """Those given by name come first; the first one is shown in tables."""
    shapes: tuple[ReportShape, ...]
    engine: ReportEngine
    flags: Mapping[str, str]
    """Options that the builder was given."""
    environment: Mapping[str, str]
    """Where it was built: Python, platform, packages; nothing that names the machine."""
    layers: tuple[ReportLayer, ...]
    unjoined_candidates: tuple[ReportCandidateTable, ...]
    timing_cache: ReportTimingCache | None
    """None where the builder has none."""
    sites: tuple[ReportSite, ...]
    near_misses: tuple[ReportNearMiss, ...]
    islands: tuple[ReportIsland, ...]
    """Empty where the model was built in its own precision."""
    onnx_nodes: Mapping[str, str]
    """Label of every ONNX node -> its operator; the labels are those in `layers[].onnx_nodes`."""
    totals: ReportTotals
    assumptions: tuple[str, ...]
    """What the derived figures rest on, one sentence each."""
    warnings: tuple[str, ...]
