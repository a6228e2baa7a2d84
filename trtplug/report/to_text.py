"""A report for the terminal: at most `width` columns, and no name taken as markup."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from trtplug.report.heading import bound_note, heading_facts, kernel_counts, total_words
from trtplug.report.names import elide
from trtplug.report.rows import by_bound, layer_rows, left_out_words, type_rows
from trtplug.report.sections import sections
from trtplug.report.text_table import layer_table, list_table, type_table

if TYPE_CHECKING:
    from rich.console import Console

    from trtplug.report.report import Report
    from trtplug.report.sections import Section

LAYERS_SHOWN = 40
LINES_SHOWN = 12
"""Of each list below the tables."""

_LABEL = 20
"""Columns of a label, which may hold the name of an input."""

NARROWEST = 60
"""Columns below which the tables would have no room for names."""


def report_to_text(report: Report, width: int = 100, color: bool = False) -> str:
    """The report as lines of at most `width` columns, or 60 where fewer are asked for."""
    width = max(width, NARROWEST)
    console = _console(width, color)
    _print_heading(console, report)
    _print_layers(console, report)
    console.print("Share by type of layer", style="bold")
    console.print(type_table(type_rows(report)), "")
    for section in sections(report):
        _print_section(console, section, width)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().rstrip().split("\n")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _console(width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def load_console() -> None:
    """Loads what prints tables; that takes about as long as printing one."""
    _console(NARROWEST, color=False).print(list_table([("", "")]))


def _print_heading(console: Console, report: Report) -> None:
    facts = (*heading_facts(report), ("kernels", kernel_counts(report)))
    console.print(list_table((elide(label, _LABEL), value) for label, value in facts))
    console.print()
    console.print(bound_note(report), style="bold")
    console.print()


def _print_layers(console: Console, report: Report) -> None:
    rows = by_bound(layer_rows(report))
    if rows:
        console.print(layer_table(rows[:LAYERS_SHOWN], console.width))
    if len(rows) > LAYERS_SHOWN:
        console.print(left_out_words(rows[LAYERS_SHOWN:]))
    console.print(total_words(report), style="bold")
    console.print()


def _print_section(console: Console, section: Section, width: int) -> None:
    console.print(section.title, style="bold")
    shown = section.lines[:LINES_SHOWN]
    if any(line.name for line in shown):
        named = ((elide(line.name, width // 3), line.words) for line in shown)
        console.print(list_table(named, indent=2))
    else:
        for line in shown:
            console.print(f"  {line.words}")
    more = len(section.lines) - LINES_SHOWN
    if more > 0:
        console.print(f"  and {more:,} more, in report.html")
    console.print()
