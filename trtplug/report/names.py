"""Names from a model or a builder made fit to be shown: visible, and short enough.

A name may hold anything: control characters, right-to-left overrides, line breaks, nothing at all.
What shows a name escapes it for its own format; this module makes sure that what is read is what
is there.
"""

from __future__ import annotations

NO_NAME = "(no name)"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def visible(name: str) -> str:
    r"""The name with each character that is not printable written as its escape.

    A line break becomes `\n`, a right-to-left override `\u202e`; an empty name becomes `(no name)`.
    """
    return printable(name) or NO_NAME


def printable(text: str) -> str:
    """The text with its control characters as escapes, so that none can steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def elide(name: str, width: int) -> str:
    """At most `width` characters: the middle goes, since generated names differ at their ends."""
    if len(name) <= width:
        return name
    if width <= 1:
        return ELLIPSIS[:width]
    tail = (width - 1) // 2
    head = width - 1 - tail
    return name[:head] + ELLIPSIS + (name[-tail:] if tail else "")
