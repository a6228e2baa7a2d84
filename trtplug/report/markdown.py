"""A report as GitHub-flavoured Markdown, for the summary of a CI job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.report.heading import bound_note, heading_facts, kernel_counts, total_words
from trtplug.report.rows import (
    by_bound,
    layer_figures,
    layer_rows,
    left_out_words,
    type_columns,
)
from trtplug.report.sections import sections
from trtplug.report.tables import markdown_line, markdown_name, markdown_table, markdown_text
from trtplug.report.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trtplug.report.data import Report
    from trtplug.report.rows import Columns, LayerRow
    from trtplug.report.sections import Line, Section


LAYERS_SHOWN = 40
LINES_SHOWN = 20
"""Of each list below the tables."""


def report_to_markdown(report: Report) -> str:
    """The report: facts, the layers with the largest bounds, and lists of what needs a look."""
    rows = by_bound(layer_rows(report))
    facts = (*heading_facts(report), ("kernels", kernel_counts(report)))
    left_out = f"{markdown_text(left_out_words(rows[LAYERS_SHOWN:]))}."
    parts = [
        f"## {markdown_name(report.model.file)} on {markdown_text(report.target)}",
        markdown_table(("", ""), [tuple(map(markdown_text, fact)) for fact in facts]),
        f"> {markdown_text(bound_note(report))}",
        "### Layers",
        _layers(report, rows[:LAYERS_SHOWN]),
        *([left_out] if len(rows) > LAYERS_SHOWN else []),
        f"**{markdown_text(total_words(report))}**",
        "### Share by type of layer",
        _types(report),
        *map(_section, sections(report)),
        "### Assumptions",
        "\n".join(f"- {markdown_line(visible(line))}" for line in report.assumptions) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _layers(report: Report, rows: tuple[LayerRow, ...]) -> str:
    if not rows:
        return "The builder reported no layers."
    names = {
        "#": [str(r.layer.index) for r in rows],
        "layer": [markdown_name(r.layer.name) for r in rows],
        "type": [markdown_text(r.type) for r in rows],
        "ONNX nodes": map(_nodes, rows),
        "kernel": map(_kernel, rows),
        "format": [markdown_text(r.tensors) for r in rows],
    }
    return _table(names, layer_figures(report, rows))


def _table(names: Mapping[str, Iterable[str]], figures: Columns) -> str:
    """`names` are Markdown already, `figures` are aligned to the right."""
    heads = [head[0].upper() + head[1:] for head in (*names, *figures)]
    escaped = (map(markdown_text, column) for column in figures.values())
    rows = zip(*names.values(), *escaped, strict=True)
    return markdown_table(heads, rows, heads[len(names) :])


def _types(report: Report) -> str:
    figures = type_columns(report)
    return _table({"type": map(markdown_text, figures.pop("type"))}, figures)


def _kernel(row: LayerRow) -> str:
    chosen = row.layer.kernel_status == "chosen"
    return markdown_name(row.kernel) if chosen else markdown_text(row.kernel)


def _nodes(row: LayerRow) -> str:
    if row.lead is None:
        return markdown_text(f"added: {row.layer.added}") if row.layer.added else "none"
    more = f" and {len(row.nodes) - 1} more" if len(row.nodes) > 1 else ""
    return markdown_name(row.layer.onnx_nodes[row.lead]) + more


def _section(section: Section) -> str:
    lines = [f"- {_line(line)}" for line in section.lines[:LINES_SHOWN]]
    more = len(section.lines) - LINES_SHOWN
    if more > 0:
        lines.append(f"- and {more:,} more, in report.html")
    return "\n".join([f"### {markdown_text(section.title)}", *([""] if lines else []), *lines])


def _line(line: Line) -> str:
    if line.name:
        return f"{markdown_name(line.name)}: {markdown_text(line.words)}"
    return markdown_line(line.words)
