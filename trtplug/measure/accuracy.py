"""How far one set of outputs is from another. Pure: knows no runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAccuracy:
    """One output against its reference; figures are None where they have no meaning."""

    name: str
    problem: str
    """What forbids a comparison, such as another shape; empty where there is nothing."""
    max_abs: float | None
    """Largest |difference|."""
    max_relative: float | None
    """Largest |difference| over max(1, largest |reference|)."""
    cosine: float | None
    """Cosine similarity of the two as vectors; 1 where both are zero throughout."""
    new_nonfinite: int
    """NaN and infinite values where the reference has finite ones."""

    @property
    def comparable(self) -> bool:
        """Whether both have the output, of one shape and type, and no value was lost."""
        return not self.problem and self.new_nonfinite == 0

    def within(self, max_relative: float) -> bool:
        """Whether no value is further off than this."""
        found = self.max_relative
        return self.comparable and found is not None and found <= max_relative

    def alike(self, min_cosine: float) -> bool:
        """Whether the cosine similarity is at least this."""
        return self.comparable and self.cosine is not None and self.cosine >= min_cosine


def compare_outputs(
    reference: Mapping[str, Array], got: Mapping[str, Array]
) -> tuple[OutputAccuracy, ...]:
    """Every output of either side, in the reference's order."""
    names = [*reference, *(n for n in got if n not in reference)]
    return tuple(_compare(name, reference.get(name), got.get(name)) for name in names)


def _compare(name: str, reference: Array | None, got: Array | None) -> OutputAccuracy:
    problem = _problem(reference, got)
    if problem or reference is None or got is None:
        return OutputAccuracy(
            name=name,
            problem=problem,
            max_abs=None,
            max_relative=None,
            cosine=None,
            new_nonfinite=0,
        )
    wanted, found = reference.astype(np.float64), got.astype(np.float64)
    finite = np.isfinite(wanted)
    lost = int(np.count_nonzero(finite & ~np.isfinite(found)))
    lost += int(np.count_nonzero(~finite & ~_same(wanted, found)))
    usable = finite & np.isfinite(found)
    difference = np.abs(wanted[usable] - found[usable]).max(initial=0.0)
    largest = np.abs(wanted[finite]).max(initial=0.0)
    return OutputAccuracy(
        name=name,
        problem="",
        max_abs=float(difference),
        max_relative=float(difference / max(1.0, largest)),
        cosine=_cosine(wanted[usable], found[usable]),
        new_nonfinite=lost,
    )


def _problem(reference: Array | None, got: Array | None) -> str:
    if reference is None:
        return "the reference has no such output"
    if got is None:
        return "it is missing"
    if reference.shape != got.shape:
        return f"its shape is {list(got.shape)}, the reference's {list(reference.shape)}"
    if reference.dtype != got.dtype:
        return f"its type is {got.dtype}, the reference's {reference.dtype}"
    return ""


def _same(a: Array, b: Array) -> Array:
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def _cosine(a: Array, b: Array) -> float:
    # Scaled first: squares of float64 outputs near 1e200 would overflow.
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    if scale == 0.0:
        return 1.0
    a, b = a / scale, b / scale
    norms = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / norms if norms else 0.0
