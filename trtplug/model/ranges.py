"""Joins the shapes given on the command line with the inputs of a model."""

from __future__ import annotations

import difflib
import shlex
from typing import TYPE_CHECKING

from trtplug.errors import ShapeError
from trtplug.tensor import ShapeRange, TensorSpec, format_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.model.load import Model


def resolve_ranges(model: Model, given: tuple[ShapeRange, ...]) -> tuple[ShapeRange, ...]:
    """One range for each input of the model, in the model's order.

    Raises:
        ShapeError: every problem at once: an unknown input, a wrong rank, a fixed size that
            contradicts, `min <= opt <= max` broken, a dynamic input without a shape. It carries the
            flags that would do.
    """
    by_name = {r.name: r for r in given}
    problems = [*_unknown(model, given), *_doubled(given)]
    for spec in model.inputs:
        chosen = by_name.get(spec.name)
        problems += _missing(spec) if chosen is None else _misfits(spec, chosen)
    if problems:
        dynamic = (s for s in model.inputs if s.is_dynamic)
        flags = tuple(f"--shape {shlex.quote(example_flag(s))}" for s in dynamic)
        raise ShapeError(model=model.path.name, problems=tuple(problems), flags=flags)
    return tuple(by_name.get(s.name) or _fixed(s) for s in model.inputs)


def example_flag(spec: TensorSpec) -> str:
    """A range that would do for an input, such as `x=1x3x320x320:1x3x640x640:1x3x960x960`."""
    steps = ((1, 320), (1, 640), (1, 960))
    shapes = [
        format_sizes(
            tuple(
                d if isinstance(d, int) else step[min(axis, 1)] for axis, d in enumerate(spec.shape)
            )
        )
        for step in steps
    ]
    return f"{spec.name}={':'.join(dict.fromkeys(shapes))}"


def _fixed(spec: TensorSpec) -> ShapeRange:
    sizes = tuple(d for d in spec.shape if isinstance(d, int))
    return ShapeRange(name=spec.name, min=sizes, opt=sizes, max=sizes)


def _unknown(model: Model, given: tuple[ShapeRange, ...]) -> Iterator[str]:
    names = [s.name for s in model.inputs]
    for chosen in given:
        if chosen.name not in names:
            # Without regard to case: X is nearer to x than to anything else.
            lower = {n.lower(): n for n in reversed(names)}
            near = difflib.get_close_matches(chosen.name.lower(), lower, n=1, cutoff=0.4)
            meant = f"; did you mean {lower[near[0]]!r}?" if near else ""
            has = ", ".join(map(repr, names)) or "none"
            yield f"there is no input {chosen.name!r}{meant} (inputs: {has})"


def _doubled(given: tuple[ShapeRange, ...]) -> Iterator[str]:
    names = [r.name for r in given]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield f"input {name!r} is given {names.count(name)} shapes; give one"


def _missing(spec: TensorSpec) -> list[str]:
    if not spec.is_dynamic:
        return []
    shown = ", ".join("?" if d is None else str(d) for d in spec.shape)
    return [f"input {spec.name!r} [{shown}] has dynamic axes and no shape was given"]


def _misfits(spec: TensorSpec, chosen: ShapeRange) -> Iterator[str]:
    where = f"input {spec.name!r}"
    ranks = {len(chosen.min), len(chosen.opt), len(chosen.max)}
    if ranks != {len(spec.shape)}:
        got = " and ".join(map(str, sorted(ranks)))
        yield f"{where} has {len(spec.shape)} axes; the shape given has {got}"
        return
    axes = zip(spec.shape, chosen.min, chosen.opt, chosen.max, strict=True)
    for axis, (dim, low, best, high) in enumerate(axes):
        if not low <= best <= high:
            yield f"{where} axis {axis}: min {low}, opt {best}, max {high} do not rise"
        if isinstance(dim, int) and (low, high) != (dim, dim):
            yield f"{where} axis {axis} is fixed at {dim} in the model; {low} to {high} was given"
