"""The model as it is built: loaded, in the precision asked for, and ready for a builder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.errors import ModelInvalidError
from trtplug.model.load import Model, load_model
from trtplug.model.precision_rules import Island
from trtplug.model.prepare import Prepared, prepare
from trtplug.model.ranges import resolve_ranges
from trtplug.model.validate import validate
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.precision import PrecisionWish


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A model and what was done to it."""

    model: Model
    """In the precision asked for."""
    islands: tuple[Island, ...]
    """Nodes that stay in float32."""
    prepared: Prepared
    ranges: tuple[ShapeRange, ...]
    """One for each input."""
    more: tuple[tuple[ShapeRange, ...], ...] = ()
    """The same, of further optimization profiles."""


def read_source(
    path: Path,
    sha256: str,
    given: tuple[ShapeRange, ...],
    precision: PrecisionWish,
    more: tuple[tuple[ShapeRange, ...], ...] = (),
) -> Source:
    """Reads a model of a known digest and makes it what the builder is to have.

    Raises:
        ModelInvalidError: it is no ONNX model, or has another digest by now.
        ShapeError: the shapes do not fit.
        NodeInvalidError: a node contradicts itself.
        PrecisionError: it cannot be given that precision, or nothing would change.
    """
    model = load_model(path)
    if model.sha256 != sha256:
        raise ModelInvalidError(path=str(path), problem="it changed while it was being read")
    ranges = resolve_ranges(model, given)
    further = tuple(resolve_ranges(model, profile) for profile in more)
    validate(model)
    changed, islands = in_precision(model, precision)
    return Source(
        model=changed,
        islands=islands,
        prepared=prepare(changed, ranges, more=further, as_it_is=changed is model),
        ranges=ranges,
        more=further,
    )


def in_precision(model: Model, wish: PrecisionWish) -> tuple[Model, tuple[Island, ...]]:
    """The model in the precision asked for, and the nodes that stay in float32.

    Raises:
        PrecisionError: it cannot be given that precision, or nothing would change.
    """
    if wish.target == "keep":
        return model, ()
    from trtplug.model.precision import change_precision
    from trtplug.model.save import joined

    change = change_precision(model, wish.target, io=wish.io, keep_fp32=wish.keep_fp32)
    return joined(change.parts, model), change.islands
