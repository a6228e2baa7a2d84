"""`trtplug sites`: where convolutions can be fused, alone and in pairs; where not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    Format,
    fold_overridable_option,
    format_option,
    model_argument,
)
from trtplug.errors import DONE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from trtplug.rewrite.listing import SiteEntry, SitesListing


@click.command()
@model_argument
@click.option(
    "--shape",
    multiple=True,
    help="NAME=SHAPE, such as x=1x3x640x640; sizes and operations are given there.",
)
@fold_overridable_option
@format_option
def sites(
    model: Path, shape: tuple[str, ...], fold_overridable: bool | None, format: Format
) -> int:
    """List where a model's convolutions fit one fused kernel.

    Convolution, bias, activation and residual, and pairs of these; near misses with the reason.
    """
    from trtplug.document import to_json

    listing = _listing(model, shape, fold_overridable)
    match format:
        case Format.JSON:
            click.echo(to_json(listing), nl=False)
        case Format.MARKDOWN:
            click.echo("\n".join(_markdown(listing)))
        case Format.TEXT:
            _print_text(listing)
    for notice in listing.notices:
        click.echo(f"note: {notice}", err=True)
    return DONE


def _listing(path: Path, shape: Sequence[str], fold_overridable: bool | None) -> SitesListing:
    from trtplug.model.load import load_model
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.shapes import infer_shapes
    from trtplug.model.validate import model_warnings, validate
    from trtplug.rewrite.find import find_all
    from trtplug.rewrite.listing import list_sites
    from trtplug.tensor import parse_shape_range

    model = load_model(path)
    validate(model)
    given = tuple(parse_shape_range(s) for s in shape)
    # Without a shape the sites are the same; only the figures are missing.
    wanted = given or all(not spec.is_dynamic for spec in model.inputs)
    ranges = resolve_ranges(model, given) if wanted else ()
    shapes = infer_shapes(model, {r.name: r.opt for r in ranges})
    found = find_all(model, fold_overridable=fold_overridable)
    return list_sites(model, found, shapes, model_warnings(model))


WIDEST = 1000
"""Columns."""

_HEAD = (
    "convolution", "input", "output", "kernel", "stride", "group", "activation", "residual",
    "folded", "MFLOP", "KiB",
)  # fmt: skip
_MISS_HEAD = ("convolution", "reason", "node", "MFLOP")
_PAIR_HEAD = ("depthwise", "pointwise", "between", "KiB saved")
_PAIR_MISS_HEAD = ("no pair from", "reason", "node")


def _rows(listing: SitesListing) -> Iterator[tuple[str, ...]]:
    for site in listing.sites:
        yield (
            site.conv,
            _sizes(site.input_dims),
            _sizes(site.output_dims),
            _sizes(site.kernel_shape),
            _sizes(site.strides),
            str(site.group),
            _activation(site),
            site.residual.replace("_activation", ""),
            str(len(site.folded)),
            _mega(site.flops),
            "?" if site.bytes is None else f"{site.bytes / 1024:.0f}",
        )


def _miss_rows(listing: SitesListing) -> Iterator[tuple[str, ...]]:
    for miss in listing.near_misses:
        yield (miss.conv, miss.reason, miss.node, _mega(miss.flops))


def _pair_rows(listing: SitesListing) -> Iterator[tuple[str, ...]]:
    for pair in listing.pairs:
        saved = "?" if pair.bytes_saved is None else f"{pair.bytes_saved / 1024:.0f}"
        yield (pair.depthwise, pair.pointwise, _sizes(pair.between_dims), saved)


def _pair_miss_rows(listing: SitesListing) -> Iterator[tuple[str, ...]]:
    for miss in listing.pair_near_misses:
        yield (miss.conv, miss.reason, miss.node)


def _tables(listing: SitesListing) -> tuple[tuple[Sequence[str], list[tuple[str, ...]]], ...]:
    """Heads and rows; pairs only where there are any, or nearly."""
    pairs = (
        (_PAIR_HEAD, list(_pair_rows(listing))),
        (_PAIR_MISS_HEAD, list(_pair_miss_rows(listing))),
    )
    return (
        (_HEAD, list(_rows(listing))),
        (_MISS_HEAD, list(_miss_rows(listing))),
        *((head, rows) for head, rows in pairs if rows),
    )


def _activation(site: SiteEntry) -> str:
    if site.activation == "none" and site.stop is not None:
        return f"none ({site.stop})"
    if site.activation == "clip":
        low, high = ("" if v is None else f"{v:g}" for v in (site.min, site.max))
        return f"clip({low},{high})"
    return site.activation


def _sizes(dims: Sequence[int] | None) -> str:
    return "?" if dims is None else "x".join(map(str, dims))


def _mega(flops: int | None) -> str:
    return "?" if flops is None else f"{flops / 1e6:.1f}"


def _summary(listing: SitesListing) -> str:
    totals = listing.totals
    share = "unknown without --shape" if totals.covered is None else f"{totals.covered:.1%}"
    return (
        f"{totals.convolutions} convolutions: {totals.sites} sites, "
        f"{totals.near_misses} near misses; convolution FLOPs in sites: {share}; "
        f"{len(listing.pairs)} depthwise + pointwise pairs"
    )


def _print_text(listing: SitesListing) -> None:
    from rich.console import Console

    # As wide as it needs to be: a name cut short is no use, and a pager scrolls.
    console = Console(highlight=False, width=WIDEST)
    for head, rows in _tables(listing):
        if rows:
            console.print(_table(head, rows))
    click.echo(_summary(listing))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> object:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from trtplug.report.words import visible

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in head:
        right = name in ("group", "folded", "MFLOP", "KiB", "KiB saved")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def _markdown(listing: SitesListing) -> Iterator[str]:
    yield f"# Sites of {_cell(listing.model)}\n"
    yield _summary(listing) + "\n"
    for head, rows in _tables(listing):
        yield "| " + " | ".join(head) + " |"
        yield "|" + " --- |" * len(head)
        for row in rows:
            yield "| " + " | ".join(map(_cell, row)) + " |"
        yield ""


def _cell(text: str) -> str:
    """A name from a model file, harmless in a Markdown table."""
    from trtplug.report.words import visible

    text = visible(text)
    escaped = "".join(f"\\{c}" if c in r"\`*_{}[]<>|#" else c for c in text)
    return " ".join(escaped.split())
