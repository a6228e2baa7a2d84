"""Facts as two columns, for the terminal or as Markdown; whatever is in them stays harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.cli.options import Format
from trtplug.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def render_rows(rows: Sequence[tuple[str, str]], format: Format) -> str:
    """Rows of name and value; a repeated name is written once."""
    shown = [
        ("" if place and name == rows[place - 1][0] else name, printable(value))
        for place, (name, value) in enumerate(rows)
    ]
    if format is Format.MARKDOWN:
        cells = [(name, _escape(value)) for name, value in shown]
        return "| | |\n|---|---|\n" + "".join(f"| {n} | {v} |\n" for n, v in cells)
    width = max((len(name) for name, _ in shown), default=0)
    return "".join(f"{name.ljust(width)}  {value}".rstrip() + "\n" for name, value in shown)


def _escape(text: str) -> str:
    for plain, safe in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("|", "&#124;"),
        ("`", "&#96;"),
    ):
        text = text.replace(plain, safe)
    return text


if TYPE_CHECKING:
    Row = Sequence[str]


def render_grid(head: Row, rows: Sequence[Row], form: Format, figures: Sequence[str] = ()) -> str:
    """Columns as wide as what is in them: nothing is cut off, whatever the terminal.

    Args:
        head: headings.
        rows: as many cells as there are headings.
        form: text or Markdown.
        figures: headings of the columns that are aligned to the right.
    """
    if form is Format.MARKDOWN:
        marks = ["--:" if name in figures else "---" for name in head]
        lines = [head, marks, *(tuple(map(markdown_cell, row)) for row in rows)]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return "".join(line + "\n" for line in aligned_lines(head, rows, figures))


def aligned_lines(head: Row, rows: Sequence[Row], figures: Sequence[str] = ()) -> Iterator[str]:
    """The heading and each row, for the terminal; arguments as `render_grid` has them."""
    shown = [tuple(map(printable, row)) for row in (head, *rows)]
    widths = [max(len(row[i]) for row in shown) for i in range(len(head))]
    for row in shown:
        cells = (
            cell.rjust(width) if name in figures else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        )
        yield "  ".join(cells).rstrip()


def markdown_cell(text: str) -> str:
    """A text that is harmless in a cell of a Markdown table."""
    from trtplug.report.markdown import text as escaped

    return escaped(printable(text))
