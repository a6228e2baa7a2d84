"""A report as GitHub-flavoured Markdown, for the summary of a CI job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.report.heading import bound_note, heading_facts, kernel_counts, total_words
from trtplug.report.rows import (
    LayerRow,
    by_bound,
    has_candidates,
    has_times,
    layer_rows,
    left_out_words,
    type_rows,
)
from trtplug.report.sections import sections
from trtplug.report.tables import markdown_line, markdown_name, markdown_table, markdown_text
from trtplug.report.words import visible

if TYPE_CHECKING:
    from trtplug.report.data import Report
    from trtplug.report.sections import Line, Section


LAYERS_SHOWN = 40
LINES_SHOWN = 20
"""Of each list below the tables."""


def report_to_markdown(report: Report) -> str:
    """The report: facts, the layers with the largest bounds, and lists of what needs a look."""
    rows = by_bound(layer_rows(report))
    parts = [
        f"## {markdown_name(report.model.file)} on {markdown_text(report.target)}",
        markdown_table(
            ("", ""),
            ((markdown_text(label), markdown_text(value)) for label, value in _facts(report)),
        ),
        f"> {markdown_text(bound_note(report))}",
        "### Layers",
        _layers(rows[:LAYERS_SHOWN], timed=has_times(report), tried=has_candidates(report)),
        *(
            [f"{markdown_text(left_out_words(rows[LAYERS_SHOWN:]))}."]
            if len(rows) > LAYERS_SHOWN
            else []
        ),
        f"**{markdown_text(total_words(report))}**",
        "### Share by type of layer",
        _types(report),
        *map(_section, sections(report)),
        "### Assumptions",
        "\n".join(f"- {markdown_line(visible(line))}" for line in report.assumptions) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _facts(report: Report) -> tuple[tuple[str, str], ...]:
    return (*heading_facts(report), ("kernels", kernel_counts(report)))


def _layers(rows: tuple[LayerRow, ...], *, timed: bool, tried: bool) -> str:
    if not rows:
        return "The builder reported no layers."
    names = ("#", "Layer", "Type", "ONNX nodes", "Kernel", "Format")
    extra = (*(("Time µs",) if timed else ()), *(("Margin",) if tried else ()))
    figures = ("FLOPs", "Bytes", "Bound µs", *extra, "Share")
    cells = (
        (
            str(row.layer.index),
            markdown_name(row.layer.name),
            markdown_text(row.type),
            _nodes(row),
            markdown_name(row.kernel)
            if row.layer.kernel_status == "chosen"
            else markdown_text(row.kernel),
            markdown_text(row.tensors),
            *_figures(row, timed=timed, tried=tried),
        )
        for row in rows
    )
    return markdown_table((*names, *figures), cells, figures)


def _figures(row: LayerRow, *, timed: bool, tried: bool) -> tuple[str, ...]:
    extra = (*((row.time,) if timed else ()), *((row.margin,) if tried else ()))
    cells = (row.flops, row.bytes, row.bound.us, *extra, row.bound.share)
    return tuple(map(markdown_text, cells))


def _nodes(row: LayerRow) -> str:
    if row.lead is None:
        return markdown_text(f"added: {row.layer.added}") if row.layer.added else "none"
    more = f" and {len(row.nodes) - 1} more" if len(row.nodes) > 1 else ""
    return markdown_name(row.layer.onnx_nodes[row.lead]) + more


def _types(report: Report) -> str:
    heads = ("Type", "Layers", "FLOPs", "Bytes", "Bound µs", "Share")
    rows = (
        tuple(map(markdown_text, (r.type, r.layers, r.flops, r.bytes, r.bound.us, r.bound.share)))
        for r in type_rows(report)
    )
    return markdown_table(heads, rows, heads[1:])


def _section(section: Section) -> str:
    lines = [f"- {_line(line)}" for line in section.lines[:LINES_SHOWN]]
    more = len(section.lines) - LINES_SHOWN
    if more > 0:
        lines.append(f"- and {more:,} more, in report.html")
    return (
        f"### {markdown_text(section.title)}\n\n" + "\n".join(lines)
        if lines
        else f"### {markdown_text(section.title)}"
    )


def _line(line: Line) -> str:
    return (
        f"{markdown_name(line.name)}: {markdown_text(line.words)}"
        if line.name
        else markdown_line(line.words)
    )
