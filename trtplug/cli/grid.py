"""A table with a heading, for the terminal or as Markdown; whatever is in it stays harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.cli.options import Format
from trtplug.report.names import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    from trtplug.report.to_markdown import text as escaped

    return escaped(printable(text))
