"""Options and help texts that commands share, and values of the command line."""

from __future__ import annotations

import difflib
import math
import re
from typing import TYPE_CHECKING, Any, get_args

import click

from trtplug.errors import UsageError
from trtplug.model.arguments import IoPrecision, Precision
from trtplug.model.arguments import to_path as path
from trtplug.report.tables import Format, markdown_line
from trtplug.report.words import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Format", "path"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)
_UNIT = re.compile(r"([KMGT])i?B?|B?", re.IGNORECASE)
_LARGEST = 2**63
"""Builders take signed 64-bit sizes."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_STATUSES = {
    0: "done",
    1: "a check failed",
    2: "wrong use or bad input",
    3: "a build failed",
    4: "this machine lacks something",
}


def epilog(*examples: str, statuses: Iterable[int] = (0, 2), failed: str = "") -> str:
    """The end of a command's help: examples and exit statuses.

    Args:
        examples: command lines.
        statuses: exit statuses of the command; for a group, of all its commands.
        failed: what status 1 means for it.
    """
    words = _STATUSES | ({1: failed} if failed else {})
    lines = ["\b", "Examples:" if len(examples) > 1 else "Example:", *(f"  {e}" for e in examples)]
    exits = ["\b", "Exit status:", *(f"  {status}  {words[status]}" for status in statuses)]
    return "\n".join([*lines, "", *exits])


def echo(text: str, *, err: bool = False) -> None:
    """Prints text; the one way of all commands, except for reports in colour.

    Names and logs of any origin may be in it. A control character would steer the terminal, so each
    is written as its escape; JSON is ASCII already.
    """
    click.echo("\n".join(map(printable, text.split("\n"))), nl=False, err=err)


def lines_of(lines: Iterable[str], form: Format) -> str:
    """Lines of words that may hold names; in Markdown nothing in them is markup."""
    shown = map(markdown_line if form is Format.MARKDOWN else printable, lines)
    return "".join(f"{line}\n" for line in shown)


class Group(click.Group):
    """Commands: without one it prints its help, and a misspelt one gets a suggestion."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's; nothing at all asks for help."""
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with `did you mean`."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            ctx.fail(f"no such command {name!r}{did_you_mean(name, known)}")
        return super().resolve_command(ctx, args)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known ones, where any is near."""
    near = difflib.get_close_matches(name, sorted(known), n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


class NumberRange(click.FloatRange):
    """As click's, but `nan` is in no range."""

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """A number of the range; anything else is refused as click does."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not in the range {self._describe_range()}", param, ctx)
        return number


def parse_bytes(text: str, option: str) -> int:
    """`4GiB`, `512M` or `1000000` as bytes; K, M, G and T are powers of 1024.

    Raises:
        UsageError: it is no size, or its unit is unknown.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{option} {text!r} is not a size", "write 512MiB, 4GiB or bytes")
    unit = _UNIT.fullmatch(match[2])
    if unit is None:
        problem = f"{option} {text!r} has an unknown unit {match[2]!r}"
        raise UsageError(problem, "units are B, KiB, MiB, GiB and TiB")
    size = float(match[1]) * _UNITS[(unit[1] or "").upper()]
    if not 1 <= size < _LARGEST:
        raise UsageError(f"{option} {text[:40]!r} is not between 1 byte and 8 EiB")
    return int(size)


TARGET_HELP = "GPU profile (rtx4090), SM (sm_89), local or all; repeatable."
SHAPE_METAVAR = "NAME=MIN[:OPT:MAX]"
_SHAPE_EXAMPLE = "such as x=1x3x640x640; repeatable."
SHAPE_HELP = f"Input shape, or shape range, {_SHAPE_EXAMPLE}"
PRECISIONS: tuple[str, ...] = get_args(Precision)
PRECISION_HELP = "Type to compute in; keep: the model's own types."

IO_PRECISIONS: tuple[str, ...] = get_args(IoPrecision)
IO_PRECISION_HELP = "Type of inputs and outputs: the model's own, or as --precision."
KEEP_FP32_HELP = "Nodes to keep in FP32, by name; repeatable."


def choice_option(
    name: str, choices: Iterable[str], text: str, default: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option with a few values, in any case."""
    kind = click.Choice(tuple(choices), case_sensitive=False)
    return click.option(name, type=kind, default=default, show_default=True, help=text)


def shape_option_for(use: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """`--shape` of a command that uses it for something else than a build."""
    text = f"{use}, {_SHAPE_EXAMPLE}"
    return click.option("--shape", multiple=True, metavar=SHAPE_METAVAR, help=text)


model_argument = click.argument("model", type=path)
target_option = click.option("--target", multiple=True, metavar="TARGET", help=TARGET_HELP)
shape_option = click.option("--shape", multiple=True, metavar=SHAPE_METAVAR, help=SHAPE_HELP)
precision_option = choice_option("--precision", PRECISIONS, PRECISION_HELP, "keep")
format_option = click.option(
    "--format",
    type=click.Choice(Format, case_sensitive=False),
    default=Format.TEXT,
    help="Output format.  [default: text]",
)
fold_overridable_option = click.option(
    "--fold-overridable/--keep-overridable",
    default=None,
    help="Whether initializers that are also graph inputs are constants.  "
    "[default: they are in models older than IR version 4]",
)
