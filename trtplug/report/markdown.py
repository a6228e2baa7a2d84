"""A report as GitHub-flavoured Markdown, for the summary of a CI job.

A name is put in a code span, or, where it holds anything that could end one, in a `<code>` element
with every such character as an entity: no name can open a cell, a tag, a link or a mention.
"""

from __future__ import annotations

import re
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
from trtplug.report.words import ELLIPSIS, elide, visible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trtplug.report.data import Report
    from trtplug.report.sections import Line, Section


LAYERS_SHOWN = 40
LINES_SHOWN = 20
"""Of each list below the tables."""

_NAME_WIDTH = 60
_SPAN = re.compile(r"[\w./:+=-](?:[\w ./:+=-]*[\w./:+=-])?", re.ASCII)
"""What a code span may hold as it is."""

_INLINE = re.compile(r"[&<>|`*~$\[\]\\]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters that mean something within a line; an underscore does so only at the end of a word."""

_OPENING = re.compile(r"^(\d*)([.)#+=-])")
"""Characters that mean something at the start of a line: lists, headings, rules."""


def report_to_markdown(report: Report) -> str:
    """The report: facts, the layers with the largest bounds, and lists of what needs a look."""
    rows = by_bound(layer_rows(report))
    parts = [
        f"## {code(report.model.file)} on {text(report.target)}",
        table(("", ""), ((text(label), text(value)) for label, value in _facts(report))),
        f"> {text(bound_note(report))}",
        "### Layers",
        _layers(rows[:LAYERS_SHOWN], timed=has_times(report), tried=has_candidates(report)),
        *([f"{text(left_out_words(rows[LAYERS_SHOWN:]))}."] if len(rows) > LAYERS_SHOWN else []),
        f"**{text(total_words(report))}**",
        "### Share by type of layer",
        _types(report),
        *map(_section, sections(report)),
        "### Assumptions",
        "\n".join(f"- {_opening(visible(line))}" for line in report.assumptions) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def code(name: str) -> str:
    """A name as code, made visible, elided in the middle beyond 60 characters."""
    short = elide(visible(name), _NAME_WIDTH)
    if _SPAN.fullmatch(short.replace(ELLIPSIS, "")):
        return f"`{short}`"
    return f"<code>{_INLINE.sub(_entity, short)}</code>"


def text(words: str) -> str:
    """Visible words that may hold names, for the middle of a line: nothing in them means more."""
    escaped = _INLINE.sub(_entity, words)
    # Mentions are found in the rendered text, where an entity is an @ again; not so in code.
    return f"<code>{escaped}</code>" if "@" in words else escaped


def _opening(words: str) -> str:
    """The same at the start of a line, where blanks mean something too."""
    return _OPENING.sub(lambda match: f"{match[1]}&#{ord(match[2])};", text(words.lstrip()))


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], figures: int = 0) -> str:
    """Cells are Markdown already; the last `figures` columns are aligned to the right."""
    names = len(heads) - figures
    lines = (heads, ("---",) * names + ("--:",) * figures, *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


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
            code(row.layer.name),
            text(row.type),
            _nodes(row),
            code(row.kernel) if row.layer.kernel_status == "chosen" else text(row.kernel),
            text(row.tensors),
            *_figures(row, timed=timed, tried=tried),
        )
        for row in rows
    )
    return table((*names, *figures), cells, len(figures))


def _figures(row: LayerRow, *, timed: bool, tried: bool) -> tuple[str, ...]:
    extra = (*((row.time,) if timed else ()), *((row.margin,) if tried else ()))
    cells = (row.flops, row.bytes, row.bound.us, *extra, row.bound.share)
    return tuple(map(text, cells))


def _nodes(row: LayerRow) -> str:
    if row.lead is None:
        return text(f"added: {row.layer.added}") if row.layer.added else "none"
    more = f" and {len(row.nodes) - 1} more" if len(row.nodes) > 1 else ""
    return code(row.layer.onnx_nodes[row.lead]) + more


def _types(report: Report) -> str:
    heads = ("Type", "Layers", "FLOPs", "Bytes", "Bound µs", "Share")
    rows = (
        tuple(map(text, (r.type, r.layers, r.flops, r.bytes, r.bound.us, r.bound.share)))
        for r in type_rows(report)
    )
    return table(heads, rows, len(heads) - 1)


def _section(section: Section) -> str:
    lines = [f"- {_line(line)}" for line in section.lines[:LINES_SHOWN]]
    more = len(section.lines) - LINES_SHOWN
    if more > 0:
        lines.append(f"- and {more:,} more, in report.html")
    return (
        f"### {text(section.title)}\n\n" + "\n".join(lines)
        if lines
        else f"### {text(section.title)}"
    )


def _line(line: Line) -> str:
    return f"{code(line.name)}: {text(line.words)}" if line.name else _opening(line.words)
