"""`trtplug rewrite`: the model with a CBR node at each site, in another precision if asked."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import click

from trtplug.cli.options import (
    SHAPE_METAVAR,
    epilog,
    fold_overridable_option,
    model_argument,
    path,
)
from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.model.load import Model
    from trtplug.tensor import ShapeRange


class RewritePrecision(str, Enum):
    """What the model computes in."""

    KEEP = "keep"
    FP16 = "fp16"
    BF16 = "bf16"


class IoPrecision(str, Enum):
    """Types of the inputs and outputs."""

    KEEP = "keep"
    MATCH = "match"


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
@click.option(
    "--shape",
    multiple=True,
    metavar=SHAPE_METAVAR,
    help="Shape of a dynamic input for --check, such as x=1x3x640x640; repeatable.",
)
@click.option("--sites/--no-sites", default=True, help="Replace sites by CBR nodes.  [default: on]")
@click.option(
    "--pairs/--no-pairs",
    default=False,
    help="Replace depthwise + pointwise pairs by CBRPair nodes.  [default: off]",
)
@click.option(
    "--precision",
    type=click.Choice(RewritePrecision, case_sensitive=False),
    default=RewritePrecision.KEEP,
    help="Type to compute in; keep: the model's own types.  [default: keep]",
)
@click.option(
    "--io-precision",
    type=click.Choice(IoPrecision, case_sensitive=False),
    default=IoPrecision.KEEP,
    help="Type of inputs and outputs: the model's own, or as --precision.  [default: keep]",
)
@click.option(
    "--keep-fp32",
    multiple=True,
    metavar="GLOB",
    help="Nodes to keep in FP32, by name; repeatable.",
)
@fold_overridable_option
def rewrite(
    model: Path,
    output: Path,
    check: bool,
    shape: tuple[str, ...],
    sites: bool,
    pairs: bool,
    precision: RewritePrecision,
    io_precision: IoPrecision,
    keep_fp32: tuple[str, ...],
    fold_overridable: bool | None,
) -> int:
    """Write a copy of a model with one CBR node per site.

    ONNX Runtime 1.27 and later can run it: it supports overloads of ONNX functions.
    """
    from trtplug.model.load import load_model
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.validate import validate
    from trtplug.tensor import parse_shape_range

    source = load_model(model)
    validate(source)
    ranges = tuple(parse_shape_range(s) for s in shape)
    if check:
        ranges = resolve_ranges(source, ranges)
    _refuse(source, output, precision, keep_fp32, io_precision)
    if pairs and not sites:
        raise UsageError("--pairs means nothing with --no-sites", "leave out one of them")
    made = _in_precision(source, precision, io_precision, keep_fp32)
    _write(made, output, sites, pairs, fold_overridable)
    return _check(source, output, ranges, precision) if check else DONE


def _refuse(
    model: Model,
    output: Path,
    precision: RewritePrecision,
    keep_fp32: Sequence[str],
    io_precision: IoPrecision,
) -> None:
    if output.exists() and output.samefile(model.path):
        raise UsageError(f"{output} is the model itself", "choose another --output")
    idle = keep_fp32 or io_precision is not IoPrecision.KEEP
    if precision is RewritePrecision.KEEP and idle:
        problem = "--keep-fp32 and --io-precision mean nothing with --precision keep"
        raise UsageError(problem, "add --precision fp16")


def _in_precision(
    model: Model, precision: RewritePrecision, io: IoPrecision, keep_fp32: tuple[str, ...]
) -> Model:
    from trtplug.model.precision import change_precision
    from trtplug.model.save import joined

    if precision is RewritePrecision.KEEP:
        return model
    change = change_precision(model, precision.value, io=io.value, keep_fp32=keep_fp32)
    for island in change.islands:
        click.echo(f"fp32: {island.node} ({island.op_type}): {island.reason}", err=True)
    click.echo(f"{change.converted} nodes compute in {precision.value}", err=True)
    return joined(change.parts, model)


def _write(
    model: Model, output: Path, sites: bool, pairs: bool, fold_overridable: bool | None
) -> None:
    from trtplug.model.save import save_model
    from trtplug.model.validate import check_parts
    from trtplug.rewrite.run import rewrite_model

    only = None if sites else ()
    result = rewrite_model(model, fold_overridable=fold_overridable, only=only, pairs=pairs)
    check_parts(result.parts, output)
    save_model(result.parts, output)
    for notice in result.notices:
        click.echo(f"note: {notice}", err=True)
    for miss in result.near_misses:
        click.echo(f"left: {miss.conv}: {miss.reason.value}: {miss.reason.sentence}", err=True)
    joined = f"{len(result.pairs)} pairs among them, " if pairs else ""
    click.echo(
        f"{output}: {len(result.sites)} convolutions rewritten, {joined}"
        f"{len(model.proto.graph.node)} nodes became {len(result.parts.nodes)}"
    )


def _check(
    model: Model, output: Path, ranges: Sequence[ShapeRange], precision: RewritePrecision
) -> int:
    from trtplug.measure.equality import ALIKE, EXACT, compare_models, worst
    from trtplug.measure.reference import overload_notice

    shapes = [{r.name: r.min for r in ranges}, {r.name: r.opt for r in ranges}]
    distinct = [s for i, s in enumerate(shapes) if s not in shapes[:i]]
    trials = compare_models(model.path, output, model.inputs, distinct)
    if notice := overload_notice(output):
        click.echo(f"note: {notice}", err=True)
    outputs = [o for t in trials for o in t.outputs]
    least = ALIKE.get(precision.value)
    held = all(o.within(EXACT) if least is None else o.alike(least) for o in outputs)
    limit = f"difference at most {EXACT:g}" if least is None else f"cosine at least {least:g}"
    trial, found = worst(trials)
    detail = found.problem or (
        f"difference {found.max_abs:.3g}, relative {found.max_relative:.3g}, "
        f"cosine {found.cosine:.6f}, {found.new_nonfinite} values lost"
    )
    click.echo(
        f"{'equal' if held else 'NOT EQUAL'} in {len(trials)} runs ({limit}); "
        f"worst: output {found.name!r}, seed {trial.seed}: {detail}"
    )
    return DONE if held else GATE_FAILED
