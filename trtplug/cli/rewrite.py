"""`trtplug rewrite`: the model with a CBR node at each site, in another precision if asked."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def rewrite(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare both in ONNX Runtime; exit 1 where they differ."),
    ] = False,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MIN[:OPT:MAX] for --check, where inputs are dynamic; repeatable."),
    ] = None,
    sites: Annotated[
        bool, typer.Option("--sites/--no-sites", help="Put CBR nodes at the sites.  [default: on]")
    ] = True,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs/--no-pairs",
            help="One CBRPair node where a depthwise and a pointwise site form a pair.  "
            "[default: off]",
        ),
    ] = False,
    precision: Annotated[
        RewritePrecision, typer.Option(help="Type to compute in; keep: as the model says.")
    ] = RewritePrecision.KEEP,
    io_precision: Annotated[
        IoPrecision, typer.Option(help="Inputs and outputs: keep their type, or match --precision.")
    ] = IoPrecision.KEEP,
    keep_fp32: Annotated[
        list[str] | None,
        typer.Option(help="GLOB over node names that stay in FP32; repeatable."),
    ] = None,
    fold_overridable: Annotated[
        bool | None,
        typer.Option(
            "--fold-overridable/--keep-overridable",
            help="Treat initializers that are graph inputs too as constants, or leave them.  "
            "[default: constants where the file is older than IR 4]",
        ),
    ] = None,
) -> int:
    """Write the model with one CBR node at each site; any ONNX runtime can run the file."""
    from trtplug.model.load import load_model
    from trtplug.model.ranges import resolve_ranges
    from trtplug.model.validate import validate
    from trtplug.tensor import parse_shape_range

    source = load_model(model)
    validate(source)
    ranges = tuple(parse_shape_range(s) for s in shape or [])
    if check:
        ranges = resolve_ranges(source, ranges)
    _refuse(source, output, precision, keep_fp32 or [], io_precision)
    if pairs and not sites:
        raise UsageError("--pairs means nothing with --no-sites")
    made = _in_precision(source, precision, io_precision, tuple(keep_fp32 or ()))
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
        typer.echo(f"fp32: {island.node} ({island.op_type}): {island.reason}", err=True)
    typer.echo(f"{change.converted} nodes compute in {precision.value}", err=True)
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
        typer.echo(f"note: {notice}", err=True)
    for miss in result.near_misses:
        typer.echo(f"left: {miss.conv}: {miss.reason.value}: {miss.reason.sentence}", err=True)
    joined = f"{len(result.pairs)} pairs among them, " if pairs else ""
    typer.echo(
        f"{output}: {len(result.sites)} convolutions rewritten, {joined}"
        f"{len(model.proto.graph.node)} nodes became {len(result.parts.nodes)}"
    )


def _check(
    model: Model, output: Path, ranges: Sequence[ShapeRange], precision: RewritePrecision
) -> int:
    from trtplug.measure.equality import ALIKE, EXACT, compare_models, worst

    shapes = [{r.name: r.min for r in ranges}, {r.name: r.opt for r in ranges}]
    distinct = [s for i, s in enumerate(shapes) if s not in shapes[:i]]
    trials = compare_models(model.path, output, model.inputs, distinct)
    outputs = [o for t in trials for o in t.outputs]
    least = ALIKE.get(precision.value)
    held = all(o.within(EXACT) if least is None else o.alike(least) for o in outputs)
    limit = f"difference at most {EXACT:g}" if least is None else f"cosine at least {least:g}"
    trial, found = worst(trials)
    detail = found.problem or (
        f"difference {found.max_abs:.3g}, relative {found.max_relative:.3g}, "
        f"cosine {found.cosine:.6f}, {found.new_nonfinite} values lost"
    )
    typer.echo(
        f"{'equal' if held else 'NOT EQUAL'} in {len(trials)} runs ({limit}); "
        f"worst: output {found.name!r}, seed {trial.seed}: {detail}"
    )
    return DONE if held else GATE_FAILED
