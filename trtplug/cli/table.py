"""Facts as two columns, for the terminal or as Markdown; whatever is in them stays harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.cli.options import Format
from trtplug.report.names import printable

if TYPE_CHECKING:
    from collections.abc import Sequence


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
