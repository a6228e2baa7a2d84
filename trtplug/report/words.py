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


UNKNOWN = "-"
DYNAMIC = "?"

_SI = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_ROUNDS_UP = 999.5
"""From here on three digits would read 1,000: the next prefix takes over."""


def format_count(number: int | None) -> str:
    """`12345` as `12,345`."""
    return UNKNOWN if number is None else f"{number:,}"


def format_flops(flops: int | None) -> str:
    """`1234567` as `1.23 M`: floating-point operations, with an SI prefix."""
    if flops is None:
        return UNKNOWN
    value, prefix = _scaled(flops, 1000, _SI)
    return f"{_digits(value, exact=not prefix)} {prefix}".rstrip()


def format_bytes(size_bytes: int | None) -> str:
    """`1234567` as `1.18 MiB`."""
    if size_bytes is None:
        return UNKNOWN
    value, unit = _scaled(size_bytes, 1024, _BINARY)
    return f"{_digits(value, exact=unit == 'B')} {unit}"


def format_us(time_us: float | None) -> str:
    """Microseconds without the unit, which the heading has; `<0.01` for what rounds to 0."""
    if time_us is None:
        return UNKNOWN
    if 0 < time_us < 0.005:
        return "<0.01"
    return _digits(time_us, exact=not time_us)


format_ratio = format_us
"""A plain quotient, such as operations a byte."""


def format_share(share: float | None) -> str:
    """`0.123` as `12.3%`; `<0.1%` for what rounds to 0."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share * 100:.1f}%" if share else "0%"


def format_margin(margin: float | None) -> str:
    """`0.0312` as `3.1%`, below zero too."""
    return UNKNOWN if margin is None else f"{margin * 100:.1f}%"


def format_dims(dims: tuple[int, ...]) -> str:
    """`(1, 16, -1)` as `1x16x?`; a rank of 0 as `scalar`."""
    return "x".join(DYNAMIC if d < 0 else str(d) for d in dims) or "scalar"


def _scaled(value: float, base: int, prefixes: tuple[str, ...]) -> tuple[float, str]:
    for prefix in prefixes[:-1]:
        if abs(value) < _ROUNDS_UP:
            return value, prefix
        value /= base
    return value, prefixes[-1]


def _digits(value: float, exact: bool = False) -> str:
    if exact or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"
