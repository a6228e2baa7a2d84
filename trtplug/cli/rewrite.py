"""`trtplug rewrite`: the model with a CBR node at each site, or in another precision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trtplug.errors import DONE, GATE_FAILED, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.model.load import Model
    from trtplug.tensor import ShapeRange


def rewrite(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Run both in ONNX Runtime and compare; exit 1 where they differ."
        ),
    ] = False,
    shape: Annotated[
        list[str] | None,
        typer.Option(help="NAME=MIN[:OPT:MAX] for --check, where inputs are dynamic; repeatable."),
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
    from trtplug.model.save import save_model
    from trtplug.model.validate import check_parts, validate
    from trtplug.rewrite.run import rewrite_model
    from trtplug.tensor import parse_shape_range

    source = load_model(model)
    validate(source)
    ranges = tuple(parse_shape_range(s) for s in shape or [])
    if check:
        ranges = resolve_ranges(source, ranges)
    _refuse_overwriting(source, output)
    result = rewrite_model(source, fold_overridable=fold_overridable)
    check_parts(result.parts, output)
    save_model(result.parts, output)
    for notice in result.notices:
        typer.echo(f"note: {notice}", err=True)
    typer.echo(
        f"{output}: {len(result.sites)} of {len(result.sites) + len(result.near_misses)} "
        f"convolutions rewritten, {len(source.proto.graph.node)} nodes became "
        f"{len(result.parts.nodes)}"
    )
    return _check(source, output, ranges) if check else DONE


def _refuse_overwriting(model: Model, output: Path) -> None:
    if output.exists() and output.samefile(model.path):
        raise UsageError(f"{output} is the model itself", "choose another --output")


def _check(model: Model, output: Path, ranges: Sequence[ShapeRange]) -> int:
    from trtplug.measure.equality import EXACT, compare_models, worst

    shapes = [{r.name: r.min for r in ranges}, {r.name: r.opt for r in ranges}]
    distinct = [s for i, s in enumerate(shapes) if s not in shapes[:i]]
    trials = compare_models(model.path, output, model.inputs, distinct)
    trial, found = worst(trials)
    held = all(o.within(EXACT) for t in trials for o in t.outputs)
    detail = found.problem or (
        f"largest difference {found.max_abs:.3g}, relative {found.max_relative:.3g}, "
        f"{found.new_nonfinite} values lost"
    )
    typer.echo(
        f"{'equal' if held else 'NOT EQUAL'} in {len(trials)} runs (limit {EXACT:g}): "
        f"output {found.name!r}, seed {trial.seed}: {detail}"
    )
    return DONE if held else GATE_FAILED
