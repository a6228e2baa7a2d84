"""Tables for the terminal, as Markdown and as JSON; the one place that escapes names for Markdown.

A name may hold anything. For the terminal, control characters (C0, C1, bidirectional overrides)
become visible escapes. In Markdown a name is a code span or a `<code>` element, and in other text
every character that could open a cell, a tag, a link, a mention or a reference is an entity.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import TYPE_CHECKING

from trtplug.report.words import ELLIPSIS, elide, printable, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Row = Sequence[str]


class Format(str, Enum):
    """What is written to stdout."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


_NAME_WIDTH = 60
_SPAN = re.compile(r"[\w./:+=-](?:[\w ./:+=-]*[\w./:+=-])?", re.ASCII)
"""What may be in a code span as it is."""

_INLINE = re.compile(r"[&<>|`*~$\[\]\\]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Characters with a meaning within a line; an underscore has one only at the end of a word."""

_OPENING = re.compile(r"^(\d*)([.)#+=-])")
"""Characters with a meaning at the start of a line: lists, headings, rules."""

_REFERENCE = re.compile(r"@|#\d|\bGH-\d", re.IGNORECASE)
"""Mentions and references are found in the rendered text, where an entity is an @ again; but not
in code."""


def markdown_name(name: str) -> str:
    """A name as code, made visible, elided in the middle beyond 60 characters."""
    short = elide(visible(name), _NAME_WIDTH)
    if _SPAN.fullmatch(short.replace(ELLIPSIS, "")):
        return f"`{short}`"
    return f"<code>{_INLINE.sub(_entity, short)}</code>"


def markdown_text(words: str) -> str:
    """Words that may hold names, for a cell or the middle of a line: nothing in them is markup."""
    shown = printable(words)
    escaped = _INLINE.sub(_entity, shown)
    return f"<code>{escaped}</code>" if _REFERENCE.search(shown) else escaped


def markdown_line(words: str) -> str:
    """The same at the start of a line, where blanks have a meaning too."""
    safe = markdown_text(words.lstrip())
    return _OPENING.sub(lambda match: f"{match[1]}&#{ord(match[2])};", safe)


def _entity(match: re.Match[str]) -> str:
    return f"&#{ord(match[0])};"


def markdown_table(heads: Row, rows: Iterable[Row], figures: Sequence[str] = ()) -> str:
    """A table whose cells are Markdown already; the columns `figures` are aligned to the right."""
    marks = ["--:" if name in figures else "---" for name in heads]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows))


def aligned_lines(head: Row, rows: Sequence[Row], figures: Sequence[str] = ()) -> Iterator[str]:
    """The heading and each row, for the terminal; arguments as `render_grid` has them."""
    shown = [tuple(map(printable, row)) for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (
            cell.rjust(width) if name in figures else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        )
        yield "  ".join(cells).rstrip()


def render_grid(head: Row, rows: Sequence[Row], form: Format, figures: Sequence[str] = ()) -> str:
    """Columns as wide as their contents: nothing is cut off.

    Args:
        head: headings.
        rows: as many cells as there are headings.
        form: text or Markdown.
        figures: headings of the columns that are aligned to the right.
    """
    if form is Format.MARKDOWN:
        return (
            markdown_table(head, [tuple(map(markdown_text, row)) for row in rows], figures) + "\n"
        )
    return "".join(line + "\n" for line in aligned_lines(head, rows, figures))


def render_rows(rows: Sequence[tuple[str, str]], form: Format) -> str:
    """Rows of name and value, in text or Markdown; a repeated name is written once."""
    shown = [
        ("" if place and name == rows[place - 1][0] else name, value)
        for place, (name, value) in enumerate(rows)
    ]
    if form is Format.MARKDOWN:
        return render_grid(("", ""), shown, form)
    return "".join(line + "\n" for line in list(aligned_lines(("", ""), shown))[1:])


def render_titled(title: str, table: str, form: Format) -> str:
    """A table under a heading."""
    heading = f"### {markdown_text(title)}" if form is Format.MARKDOWN else printable(title)
    return f"{heading}\n\n{table}"


def render_json(schema: str, record: Mapping[str, object]) -> str:
    """A document of one command."""
    return json.dumps({"schema": schema, **record}, indent=2) + "\n"
