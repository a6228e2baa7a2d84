"""What kernels a model asks for: its sites with their sizes, equal ones once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.problem import AnyProblem, KernelProblem, PairProblem
from trtplug.model.load import Model, load_model
from trtplug.model.ranges import resolve_ranges
from trtplug.model.shapes import ShapeTable, infer_shapes
from trtplug.model.validate import validate
from trtplug.rewrite.find import find_all
from trtplug.rewrite.site import cbr_attributes
from trtplug.tensor import ShapeRange, Sizes, element_type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trtplug.rewrite.site import Pair, Site


PRECISIONS = {"keep": None} | {word: element_type(word).name for word in ("fp16", "bf16")}
"""What `--precision` takes -> the type that kernels are asked for; None: the site's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One problem, and the convolutions that have it."""

    problem: AnyProblem
    sites: tuple[str, ...]
    """Labels of the convolutions; of pairs both, such as `dw+pw`."""


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
    """In order of their first site; those of pairs last."""
    unsized: tuple[Unsized, ...]


def read_problems(
    path: Path, given: Sequence[ShapeRange], precision: str, *, pairs: bool = False
) -> Problems:
    """The problems of a model at the `given` sizes of its inputs, and the sites that have none.

    `precision` is a key of `PRECISIONS`; `pairs`: list those of its pairs too, after the sites'.

    Raises:
        TrtplugError: the model cannot be read, or the shapes do not fit it.
    """
    model = load_model(path)
    validate(model)
    ranges = resolve_ranges(model, tuple(given))
    sizes = size_ranges(model, (ranges,))
    dtype = PRECISIONS[precision]
    found = find_all(model)
    asked: dict[AnyProblem, list[str]] = {}
    unsized = []
    labelled = (
        *((s.conv, site_problem(s, sizes, dtype)) for s in found.sites),
        *((p.label, pair_problem(p, sizes, dtype)) for p in (found.pairs if pairs else ())),
    )
    for label, problem in labelled:
        if isinstance(problem, Unsized):
            unsized.append(problem)
        else:
            asked.setdefault(problem, []).append(label)
    return Problems(
        model=model,
        sizes={r.name: r.opt for r in ranges},
        asked=tuple(Asked(problem=p, sites=tuple(names)) for p, names in asked.items()),
        unsized=tuple(unsized),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRanges:
    """What the sizes of a model's tensors may be, over all optimization profiles."""

    tables: tuple[ShapeTable, ...]
    """At the ends of each profile: min, opt, max of the first one, and so on."""

    def of(self, tensor: str) -> ShapeRange | None:
        """The range of one tensor, opt as in the first profile; None where a size is not known."""
        known = [d for table in self.tables if (d := table.dims(tensor)) is not None]
        if len(known) < len(self.tables) or len({len(d) for d in known}) != 1:
            return None
        # Not by the tensor's name: equal problems are to be equal.
        return ShapeRange(
            name="x",
            min=tuple(map(min, zip(*known, strict=True))),
            opt=known[_OPT],
            max=tuple(map(max, zip(*known, strict=True))),
        )


_ENDS = ("min", "opt", "max")
_OPT = _ENDS.index("opt")


def size_ranges(model: Model, profiles: Sequence[tuple[ShapeRange, ...]]) -> SizeRanges:
    """Sizes at the ends of every profile; each a range for each input."""
    ends = [{r.name: getattr(r, end) for r in ranges} for ranges in profiles for end in _ENDS]
    # Mostly the three ends are one.
    distinct = {_key(sizes): sizes for sizes in ends}
    tables = {key: infer_shapes(model, sizes) for key, sizes in distinct.items()}
    return SizeRanges(tables=tuple(tables[_key(sizes)] for sizes in ends))


def _key(sizes: dict[str, tuple[int, ...]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(sorted(sizes.items()))


def site_problem(site: Site, sizes: SizeRanges, dtype: str | None) -> KernelProblem | Unsized:
    """The problem of a site, or why it has none; `dtype` None takes the site's own."""
    x = sizes.of(site.input)
    if x is None:
        return Unsized(site=site.conv, problem=f"the size of {site.input} is not known")
    try:
        return KernelProblem(
            attributes=cbr_attributes(site),
            outputs=site.channels,
            dtype=dtype or site.dtype,
            x=x,
        )
    except ValueError as error:
        return Unsized(site=site.conv, problem=str(error))


def pair_problem(pair: Pair, sizes: SizeRanges, dtype: str | None) -> PairProblem | Unsized:
    """The problem of a pair, or why it has none; `dtype` None takes the sites' own."""
    first = pair.depthwise
    x = sizes.of(first.input)
    if x is None:
        return Unsized(site=pair.label, problem=f"the size of {first.input} is not known")
    try:
        return PairProblem(
            attributes=pair.attributes,
            outputs=pair.pointwise.channels,
            dtype=dtype or first.dtype,
            x=x,
        )
    except ValueError as error:
        return Unsized(site=pair.label, problem=str(error))
