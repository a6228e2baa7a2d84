"""A report's layers as rows of words, the same ones for the terminal, Markdown and HTML.

In goes a Report, out come rows whose names are visible and whose figures are formatted. Knows no
output format: escaping, colour and width are the renderer's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from trtplug.report.data import ReportLayer
from trtplug.report.words import (
    UNKNOWN,
    format_bytes,
    format_count,
    format_flops,
    format_margin,
    format_ratio,
    format_share,
    format_us,
    visible,
)
from trtplug.tensor import find_element_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trtplug.report.data import BoundBy, Report

FIRST_RUN = "chosen at first run"
NOT_REPORTED = "not reported"
NO_KERNEL = "no kernel"
_NO_KERNEL_NAME = {"chosen_at_first_run": FIRST_RUN, "none": NO_KERNEL}
NEAR_TIE = "near tie"
ARROW = "\N{RIGHTWARDS ARROW}"

_LEADING = (
    *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv"),
    *("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul", "Einsum"),
    *("Attention", "LSTM", "GRU", "RNN"),
)
"""Operators that the others in a layer were fused to."""

_FORMAT_WORD = re.compile(r"^\((\w+)\)|\(k(\w+)\)$")
"""`(NHWC) Channel major format`, or in older layouts `Row major linear FP32 format (kLINEAR)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCell:
    """The lower bound that one GPU sets."""

    us: str
    share: str
    """Of the sum over all layers."""
    by: str
    value_us: float | None
    share_value: float | None


NO_BOUND = BoundCell(us=UNKNOWN, share=UNKNOWN, by="", value_us=None, share_value=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounded:
    """What has a lower bound on each GPU."""

    bounds: tuple[BoundCell, ...]
    """One for each of the report's GPUs, in their order."""

    @property
    def bound(self) -> BoundCell:
        """For the GPU that tables show."""
        return self.bounds[0] if self.bounds else NO_BOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow(_Bounded):
    """One engine layer, ready to be laid out."""

    layer: ReportLayer
    """For sorting and for what only some renderers show."""
    name: str
    type: str
    nodes: tuple[str, ...]
    lead: int | None
    """Which of `nodes` is shown where there is room for one; None without nodes."""
    kernel: str
    tensors: str
    """Type and format, such as `fp32 NHWC`; with an arrow where the layer changes them."""
    flops: str
    intensity: str
    bytes: str
    time: str
    margin: str
    """To the runner-up among the candidates, with a mark where the two are a near tie."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow(_Bounded):
    """All layers of one type."""

    type: str
    layers: str
    flops: str
    bytes: str


Columns = dict[str, tuple[str, ...]]
"""Heading -> the cell of each row."""


def layer_rows(report: Report) -> tuple[LayerRow, ...]:
    """Every layer, in the engine's order."""
    return tuple(_layer_row(report, layer) for layer in report.layers)


def by_bound(rows: tuple[LayerRow, ...]) -> tuple[LayerRow, ...]:
    """The largest bound on the first GPU first; those without one last, in the engine's order."""
    return tuple(sorted(rows, key=lambda row: _largest_first(row.bound)))


def type_rows(report: Report) -> tuple[TypeRow, ...]:
    """Every type of layer, the largest bound on the first GPU first."""
    rows = (
        TypeRow(
            type=visible(share.type),
            layers=format_count(share.layers),
            flops=format_flops(share.flops),
            bytes=format_bytes(share.bytes),
            bounds=_bounds(report, share.bound_us, {}),
        )
        for share in report.totals.by_type
    )
    return tuple(sorted(rows, key=lambda row: (_largest_first(row.bound), row.type)))


def _largest_first(bound: BoundCell) -> float:
    return 1.0 if bound.value_us is None else -bound.value_us


def total_bounds(report: Report) -> tuple[BoundCell, ...]:
    """The sum over all layers, one for each GPU."""
    return _bounds(report, report.totals.bound_us, {})


def layer_figures(report: Report, rows: tuple[LayerRow, ...]) -> Columns:
    """The columns of numbers; times and margins only where any layer of the report has them."""
    times = {"time µs": "time"} if has_times(report) else {}
    margins = {"margin": "margin"} if has_candidates(report) else {}
    return _columns(rows, {**_WORK, **times, **margins, "share": "bound.share"})


def type_columns(report: Report) -> Columns:
    """The table of layer types."""
    names = {"type": "type", "layers": "layers", **_WORK, "share": "bound.share"}
    return _columns(type_rows(report), names)


_WORK = {"FLOPs": "flops", "bytes": "bytes", "bound µs": "bound.us"}


def _columns(rows: tuple[_Bounded, ...], names: Mapping[str, str]) -> Columns:
    """Each heading with the attribute of a row that it shows."""
    return {heading: tuple(map(attrgetter(name), rows)) for heading, name in names.items()}


def has_times(report: Report) -> bool:
    """Whether any layer was measured."""
    return any(layer.time_us is not None for layer in report.layers)


def has_candidates(report: Report) -> bool:
    """Whether the builder reported candidates for any layer."""
    return any(layer.candidates for layer in report.layers)


def margin_words(margin: float | None, near_tie: bool | None) -> str:
    """Such as `12.0%`, or `1.2% near tie`."""
    return f"{format_margin(margin)} {NEAR_TIE}" if near_tie else format_margin(margin)


def kernel_words(layer: ReportLayer) -> str:
    """The kernel's name, or why there is none; a stub is never shown as a kernel."""
    if layer.kernel_status == "chosen" and layer.kernel is not None:
        return visible(layer.kernel)
    return _NO_KERNEL_NAME.get(layer.kernel_status, NOT_REPORTED)


def node_words(row: LayerRow) -> str:
    """The leading ONNX node, and how many more there are, such as `Conv.0 +5`."""
    if row.lead is None:
        return UNKNOWN
    more = f" +{len(row.nodes) - 1}" if len(row.nodes) > 1 else ""
    return row.nodes[row.lead] + more


def left_out_words(rows: tuple[LayerRow, ...]) -> str:
    """What a table leaves out, and where to find it."""
    shares = [r.bound.share_value for r in rows if r.bound.share_value is not None]
    share = f" ({format_share(sum(shares))} of the bound)" if shares else ""
    more = "1 more layer is" if len(rows) == 1 else f"{len(rows):,} more layers are"
    return f"{more} in report.html and report.json{share}"


def format_word(layout: str) -> str:
    """The short word in the builder's description of a format, such as `NHWC`."""
    match = _FORMAT_WORD.search(layout)
    word = (match[1] or match[2]) if match else layout
    return "Linear" if word == "LINEAR" else visible(word)


def dtype_word(dtype: str) -> str:
    """The short word for a type, whoever named it: `Half` and `float16` are both `fp16`."""
    found = find_element_type(dtype)
    return found.word if found else visible(dtype)


def tensors_words(layer: ReportLayer) -> str:
    """The first output's type and format, and the first input's where the layer changes them."""
    if not layer.outputs:
        return UNKNOWN
    border = (*layer.inputs[:1], layer.outputs[0])
    words = (f"{dtype_word(t.dtype)} {format_word(t.format)}" for t in border)
    return f" {ARROW} ".join(dict.fromkeys(words))


def _layer_row(report: Report, layer: ReportLayer) -> LayerRow:
    return LayerRow(
        layer=layer,
        name=visible(layer.name),
        type=visible(layer.type),
        nodes=tuple(visible(node) for node in layer.onnx_nodes),
        lead=_lead(report, layer),
        kernel=kernel_words(layer),
        tensors=tensors_words(layer),
        flops=format_flops(layer.flops),
        intensity=format_ratio(layer.intensity),
        bytes=format_bytes(layer.bytes),
        time=format_us(layer.time_us),
        margin=margin_words(layer.margin, layer.near_tie),
        bounds=_bounds(report, layer.bound_us, layer.bound_by),
    )


def _lead(report: Report, layer: ReportLayer) -> int | None:
    """The first node that does most of the work, or else the first one."""
    operators = [report.onnx_nodes.get(label) for label in layer.onnx_nodes]
    leading = (i for i, operator in enumerate(operators) if operator in _LEADING)
    return next(leading, 0) if operators else None


def _bounds(
    report: Report, bound_us: Mapping[str, float], by: Mapping[str, BoundBy]
) -> tuple[BoundCell, ...]:
    totals = report.totals.bound_us
    return tuple(
        _bound(bound_us.get(g.profile), totals.get(g.profile), by.get(g.profile, ""))
        for g in report.gpus
    )


def _bound(value_us: float | None, total_us: float | None, by: str) -> BoundCell:
    share = value_us / total_us if value_us is not None and total_us else None
    return BoundCell(
        us=format_us(value_us),
        share=format_share(share),
        by=by,
        value_us=value_us,
        share_value=share,
    )
