"""Tables of the terminal report: columns that fit the width, names that give way in the middle."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.report.heading import bound_note, heading_facts, kernel_counts, total_words
from trtplug.report.rows import (
    ARROW,
    FIRST_RUN,
    NEAR_TIE,
    by_bound,
    layer_figures,
    layer_rows,
    left_out_words,
    node_words,
    type_columns,
)
from trtplug.report.sections import sections
from trtplug.report.words import elide

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console
    from rich.table import Table

    from trtplug.report.data import Report
    from trtplug.report.rows import Columns, LayerRow
    from trtplug.report.sections import Section


FORMATS_FROM = 96
"""Columns of the terminal from which type and format have room."""

_GENERATED = "__myl_"
"""How most generated names start: where one must be elided, this goes first."""

_LEAST = 8
"""Columns that a name keeps, however narrow the terminal."""

LAYERS_SHOWN = 40
LINES_SHOWN = 12
"""Of each list below the tables."""

_LABEL = 20
"""Columns of a label, which may hold the name of an input."""

NARROWEST = 60
"""Columns below which the tables would have no room for names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    heading: str
    cells: tuple[str, ...]
    is_name: bool = False
    """Names give way; figures keep their width."""

    @property
    def width(self) -> int:
        """What it would take to show everything."""
        return max(map(len, (*self.heading.split("\n"), *self.cells)))


def list_table(lines: Iterable[tuple[str, str]], indent: int = 0) -> Table:
    """A label and words on each line; words that do not fit go on below themselves."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, indent), pad_edge=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, words in lines:
        table.add_row(Text(label), Text(words))
    return table


def layer_table(report: Report, rows: tuple[LayerRow, ...], width: int) -> Table:
    """One line for each row, in at most `width` columns."""
    figures = layer_figures(report, rows)
    if "margin" in figures:
        figures["margin"] = tuple(map(_margin, figures["margin"]))
    formats = _Column(heading="format", cells=tuple(map(_format, rows)))
    columns = (
        _Column(heading="#", cells=tuple(str(r.layer.index) for r in rows)),
        _Column(heading="layer", cells=tuple(r.name for r in rows), is_name=True),
        _Column(heading="type", cells=tuple(r.type for r in rows), is_name=True),
        _Column(heading="ONNX nodes", cells=tuple(map(node_words, rows)), is_name=True),
        _Column(heading="kernel", cells=tuple(map(_kernel, rows)), is_name=True),
        *([formats] if width >= FORMATS_FROM else []),
        *_figures(figures),
    )
    fixed = sum(c.width for c in columns if not c.is_name) + len(columns) - 1
    wanted = [c.width for c in columns if c.is_name]
    widths = iter(share_out(wanted, width - fixed))
    return _table([(c, next(widths) if c.is_name else c.width) for c in columns])


def type_table(figures: Columns) -> Table:
    """One line for each type of layer."""
    names = tuple(elide(name, 24) for name in figures.pop("type"))
    columns = (_Column(heading="type", cells=names, is_name=True), *_figures(figures))
    return _table([(c, c.width) for c in columns])


def _figures(figures: Columns) -> Iterator[_Column]:
    for heading, cells in figures.items():
        yield _Column(heading=heading.replace(" µs", "\nµs"), cells=cells)


def share_out(wanted: list[int], room: int) -> list[int]:
    """`room` columns among names: none gets more than it wants, and what one leaves others get."""
    given = [0] * len(wanted)
    by_size = sorted(range(len(wanted)), key=wanted.__getitem__)
    for taken, i in enumerate(by_size):
        fair = room // (len(wanted) - taken)
        given[i] = max(min(wanted[i], fair), min(wanted[i], _LEAST))
        room -= given[i]
    return given


def _kernel(row: LayerRow) -> str:
    """Shorter, since it repeats in most rows; the heading has the long form."""
    return row.kernel.removeprefix("chosen ") if row.kernel == FIRST_RUN else row.kernel


def _margin(words: str) -> str:
    """A near tie as one mark: the words have no room, the list below the table has them."""
    near = f" {NEAR_TIE}"
    return f"~{words.removesuffix(near)}" if words.endswith(near) else words


def _format(row: LayerRow) -> str:
    """What the layer writes; with an arrow where it reads something else."""
    _, arrow, after = row.tensors.rpartition(ARROW)
    return elide(f"{arrow}{after.strip()}", 12)


def _table(columns: list[tuple[_Column, int]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    for column, width in columns:
        table.add_column(
            column.heading,
            justify="left" if column.is_name or column.heading == "format" else "right",
            width=width,
            no_wrap=True,
            overflow="ellipsis",
        )
    for cells in zip(*(c.cells for c, _ in columns), strict=True):
        pairs = zip(cells, columns, strict=True)
        table.add_row(*(Text(_fit(cell, width)) for cell, (_, width) in pairs))
    return table


def _fit(cell: str, width: int) -> str:
    """Elided before the count in `Conv.0 +5`, so that the count stays."""
    first, plus, count = cell.rpartition(" +")
    if plus and count.isdecimal() and len(count) + 2 < width:
        return elide(first, width - len(count) - 2) + plus + count
    if len(cell) > width:
        cell = cell.removeprefix(_GENERATED)
    return elide(cell, width)


def report_to_text(report: Report, width: int = 100, color: bool = False) -> str:
    """The report as lines of at most `width` columns, at least 60."""
    width = max(width, NARROWEST)
    console = _console(width, color)
    facts = (*heading_facts(report), ("kernels", kernel_counts(report)))
    rows = by_bound(layer_rows(report))
    console.print(list_table((elide(label, _LABEL), value) for label, value in facts), "")
    console.print(bound_note(report), style="bold", end="\n\n")
    if rows:
        console.print(layer_table(report, rows[:LAYERS_SHOWN], width))
    if len(rows) > LAYERS_SHOWN:
        console.print(left_out_words(rows[LAYERS_SHOWN:]))
    console.print(total_words(report), style="bold", end="\n\n")
    console.print("Share by type of layer", style="bold")
    console.print(type_table(type_columns(report)), "")
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
