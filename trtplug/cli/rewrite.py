"""`trtplug rewrite`: the model with a CBR node at each site, in another precision if asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    IO_PRECISION_HELP,
    IO_PRECISIONS,
    KEEP_FP32_HELP,
    Format,
    choice_option,
    echo,
    epilog,
    fold_overridable_option,
    format_option,
    lines_of,
    model_argument,
    path,
    precision_option,
    shape_option_for,
)
from trtplug.errors import DONE, GATE_FAILED
from trtplug.report.tables import render_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from trtplug.model.arguments import IoPrecision, Precision
    from trtplug.rewrite.file import EqualityCheck, RewriteResult


@click.command(
    epilog=epilog(
        "trtplug rewrite det.onnx --out det.cbr.onnx --check --shape x=1x3x640x640",
        statuses=(0, 1, 2, 4),
        failed="with --check, outputs differ",
    )
)
@model_argument
@click.option(
    "--out",
    "-o",
    "--output",
    "output",
    type=path,
    required=True,
    metavar="FILE",
    help="File to write.",
)
@click.option("--check", is_flag=True, help="Compare the outputs of both models in ONNX Runtime.")
@shape_option_for("Shape of a dynamic input for --check")
@click.option("--sites/--no-sites", default=True, help="Replace sites by CBR nodes.  [default: on]")
@click.option(
    "--pairs/--no-pairs",
    default=False,
    help="Replace depthwise + pointwise pairs by CBRPair nodes.  [default: off]",
)
@precision_option
@choice_option("--io-precision", IO_PRECISIONS, IO_PRECISION_HELP, "keep")
@click.option("--keep-fp32", multiple=True, metavar="GLOB", help=KEEP_FP32_HELP)
@fold_overridable_option
@format_option
def rewrite(
    model: Path,
    output: Path,
    check: bool,
    shape: tuple[str, ...],
    sites: bool,
    pairs: bool,
    precision: Precision,
    io_precision: IoPrecision,
    keep_fp32: tuple[str, ...],
    fold_overridable: bool | None,
    format: Format,
) -> int:
    """Write a copy of a model with one CBR node per site.

    A CBR node is an ONNX function of a convolution with its bias, activation and residual. ONNX
    Runtime 1.27 and later can run it: it supports overloads of ONNX functions.
    """
    from trtplug import api
    from trtplug.document import to_json

    result = api.rewrite(
        model,
        output,
        sites=sites,
        pairs=pairs,
        precision=precision,
        io_precision=io_precision,
        keep_fp32=keep_fp32,
        fold_overridable=fold_overridable,
        check=check,
        shapes=shape,
    )
    echo(lines_of(_remarks(result), Format.TEXT), err=True)
    match format:
        case Format.JSON:
            echo(to_json(result))
        case Format.MARKDOWN:
            echo(render_rows(list(_rows(result, pairs)), format))
        case Format.TEXT:
            echo(lines_of((v for _, v in _rows(result, pairs)), format))
    return DONE if result.check is None or result.check.equal else GATE_FAILED


def _remarks(result: RewriteResult) -> Iterator[str]:
    """What the user should know beside the result."""
    for island in result.float32:
        yield f"fp32: {island.node} ({island.op_type}): {island.reason}"
    if result.precision != "keep":
        yield f"{result.converted} nodes compute in {result.precision}"
    for notice in result.notices:
        yield f"note: {notice}"
    for miss in result.unchanged:
        yield f"left: {miss.conv}: {miss.reason}: {miss.sentence}"


def _rows(result: RewriteResult, pairs: bool) -> Iterator[tuple[str, str]]:
    among = f"{len(result.pairs)} pairs among them, " if pairs else ""
    yield (
        "rewritten",
        f"{result.output}: {len(result.sites)} convolutions rewritten, {among}"
        f"{result.nodes_before} nodes became {result.nodes_after}",
    )
    if result.check is not None:
        yield "check", _verdict(result.check)


def _verdict(check: EqualityCheck) -> str:
    detail = check.problem or (
        f"difference {check.max_abs:.3g}, relative {check.max_relative:.3g}, "
        f"cosine {check.cosine:.6f}, {check.new_nonfinite} values lost"
    )
    return (
        f"{'equal' if check.equal else 'NOT EQUAL'} in {check.runs} runs ({check.limit}); "
        f"worst: output {check.output!r}, seed {check.seed}: {detail}"
    )
