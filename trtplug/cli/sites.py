"""`trtplug sites`: where convolutions can be fused, alone and in pairs; where not, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    Format,
    echo,
    epilog,
    fold_overridable_option,
    format_option,
    lines_of,
    model_argument,
    shape_option_for,
)
from trtplug.errors import DONE
from trtplug.report.tables import markdown_text, render_grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from trtplug.rewrite.listing import SiteEntry, SitesListing


@click.command(epilog=epilog("trtplug sites det.onnx --shape x=1x3x640x640"))
@model_argument
@shape_option_for("Input shape for sizes and FLOPs")
@fold_overridable_option
@format_option
def sites(
    model: Path, shape: tuple[str, ...], fold_overridable: bool | None, format: Format
) -> int:
    """List convolutions that one fused kernel can compute.

    A site is a convolution with its bias, activation and residual. Pairs of sites and near misses,
    with the reason, are listed too.
    """
    from trtplug import api
    from trtplug.document import to_json

    listing = api.sites(model, shapes=shape, fold_overridable=fold_overridable)
    text = to_json(listing) if format is Format.JSON else _text(listing, format)
    echo(text)
    echo(lines_of((f"note: {notice}" for notice in listing.notices), Format.TEXT), err=True)
    return DONE


_FIGURES = ("group", "folded", "MFLOP", "KiB", "KiB saved")


def _text(listing: SitesListing, format: Format) -> str:
    tables = [render_grid(head, rows, format, _FIGURES) for head, rows in _tables(listing)]
    if format is Format.MARKDOWN:
        heading = f"# Sites of {markdown_text(listing.model)}\n"
        return "\n".join((heading, _summary(listing) + "\n", *tables))
    return "\n".join((*tables, _summary(listing) + "\n"))


def _tables(
    listing: SitesListing,
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[str]]]]:
    """Head and rows of each table that has any."""
    site_head = (
        "convolution", "input", "output", "kernel", "stride", "group", "activation", "residual",
        "folded", "MFLOP", "KiB",
    )  # fmt: skip
    misses = [(m.conv, m.reason, m.node, _mega(m.flops)) for m in listing.near_misses]
    pairs = [
        (p.depthwise, p.pointwise, _sizes(p.between_dims), _kibi(p.bytes_saved))
        for p in listing.pairs
    ]
    pair_misses = [(m.conv, m.reason, m.node) for m in listing.pair_near_misses]
    for head, rows in (
        (site_head, list(map(_site_row, listing.sites))),
        (("convolution", "reason", "node", "MFLOP"), misses),
        (("depthwise", "pointwise", "between", "KiB saved"), pairs),
        (("no pair from", "reason", "node"), pair_misses),
    ):
        if rows:
            yield head, rows


def _site_row(site: SiteEntry) -> tuple[str, ...]:
    return (
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
        _kibi(site.bytes),
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


def _kibi(size_bytes: int | None) -> str:
    return "?" if size_bytes is None else f"{size_bytes / 1024:.0f}"


def _summary(listing: SitesListing) -> str:
    totals = listing.totals
    share = "unknown without --shape" if totals.covered is None else f"{totals.covered:.1%}"
    return (
        f"{totals.convolutions} convolutions: {totals.sites} sites, "
        f"{totals.near_misses} near misses; convolution FLOPs in sites: {share}; "
        f"{len(listing.pairs)} depthwise + pointwise pairs"
    )
