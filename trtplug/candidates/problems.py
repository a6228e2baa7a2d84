"""What kernels a model asks for: its sites with their sizes, equal ones once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from trtplug.model.load import Model, load_model
from trtplug.model.ranges import resolve_ranges
from trtplug.model.shapes import infer_shapes
from trtplug.model.validate import validate
from trtplug.ops.cbr import UNBOUNDED, CbrAttributes
from trtplug.rewrite.find import find_sites
from trtplug.tactics.problem import Problem
from trtplug.tensor import ShapeRange, Sizes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.model.shapes import ShapeTable
    from trtplug.rewrite.site import Site

PRECISIONS = {"keep": None, "fp16": "float16", "bf16": "bfloat16"}
"""What `--precision` takes -> the type that kernels are asked for; None: the site's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One problem, and the convolutions that have it."""

    problem: Problem
    sites: tuple[str, ...]
    """Labels of the convolutions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsized:
    """A site whose input has a size that is not known."""

    site: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problems:
    """What a model asks for."""

    model: Model
    sizes: dict[str, Sizes]
    """Of the model's inputs, as the opt shapes have them."""
    asked: tuple[Asked, ...]
    """In order of their first site."""
    unsized: tuple[Unsized, ...]


def read_problems(path: Path, given: Sequence[ShapeRange], precision: str) -> Problems:
    """The model's problems, and the sites that have none.

    Raises:
        TrtplugError: the model cannot be read, or the shapes do not fit it.
    """
    model = load_model(path)
    validate(model)
    ranges = resolve_ranges(model, tuple(given))
    ends = tuple({r.name: getattr(r, end) for r in ranges} for end in ("min", "opt", "max"))
    # Mostly the three ends are one.
    distinct = {_key(sizes): sizes for sizes in ends}
    tables = {key: infer_shapes(model, sizes) for key, sizes in distinct.items()}
    shapes = tuple(tables[_key(sizes)] for sizes in ends)
    found, _ = find_sites(model)
    asked: dict[Problem, list[str]] = {}
    unsized = []
    for site in found:
        problem = _problem(site, shapes, PRECISIONS[precision])
        if isinstance(problem, Unsized):
            unsized.append(problem)
        else:
            asked.setdefault(problem, []).append(site.conv)
    return Problems(
        model=model,
        sizes={r.name: r.opt for r in ranges},
        asked=tuple(Asked(problem=p, sites=tuple(names)) for p, names in asked.items()),
        unsized=tuple(unsized),
    )


def _key(sizes: dict[str, tuple[int, ...]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted(sizes.items()))


def attributes_of(site: Site) -> CbrAttributes:
    """A site's attributes as its CBR node has them."""
    return CbrAttributes(
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        pads=site.pads,
        dilations=site.dilations,
        group=site.group,
        activation=site.activation,
        alpha=_float32(site.alpha),
        beta=_float32(site.beta),
        min=_float32(max(site.minimum, -UNBOUNDED)),
        max=_float32(min(site.maximum, UNBOUNDED)),
        residual=site.residual,
    )


def _float32(value: float) -> float:
    return float(np.float32(value))


def _problem(site: Site, shapes: Sequence[ShapeTable], dtype: str | None) -> Problem | Unsized:
    """The problem of a site, or why it has none."""
    dims = [table.dims(site.input) for table in shapes]
    known = [d for d in dims if d is not None]
    if len(known) < len(dims):
        return Unsized(site=site.conv, problem=f"the size of {site.input} is not known")
    least, usual, most = known
    try:
        return Problem(
            attributes=attributes_of(site),
            outputs=site.channels,
            dtype=dtype or site.dtype,
            # Not by the tensor's name: equal problems are to be equal.
            x=ShapeRange(name="x", min=least, opt=usual, max=most),
        )
    except ValueError as error:
        return Unsized(site=site.conv, problem=str(error))
