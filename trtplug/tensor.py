"""Tensor facts that every stage shares: shapes, and the ranges that dynamic inputs may take."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trtplug.errors import UsageError

Dim = int | str | None
"""A size; the name of a dynamic axis; or None where nothing is known."""

Shape = tuple[Dim, ...]

Sizes = tuple[int, ...]

LARGEST_DIM = 2**31 - 1
"""TensorRT's dimensions are 32-bit in its profiles."""

_SIZES = re.compile(r"\d+(?:[x,]\d+)*|scalar")


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output of a model."""

    name: str
    dtype: str
    """ONNX name in lower case, such as `float`, `float16`, `int64`."""
    shape: Shape

    @property
    def is_dynamic(self) -> bool:
        """Whether any axis is not a fixed size."""
        return any(not isinstance(d, int) for d in self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRange:
    """The sizes one input may take: `min <= opt <= max` on each axis."""

    name: str
    min: Sizes
    opt: Sizes
    max: Sizes

    def __str__(self) -> str:
        parts = [format_sizes(s) for s in (self.min, self.opt, self.max)]
        return f"{self.name}={':'.join(parts if len(set(parts)) > 1 else parts[:1])}"


def format_sizes(sizes: Sizes) -> str:
    """`(1, 3, 640, 640)` as `1x3x640x640`; a rank of 0 as `scalar`."""
    return "x".join(map(str, sizes)) if sizes else "scalar"


def parse_shape_range(text: str) -> ShapeRange:
    """`NAME=MIN[:OPT:MAX]` or `NAME=MIN:MAX`, each such as `1x3x640x640`, as a range.

    The name may hold `:`, `=` and `/`: it ends at the last `=`. With MIN and MAX alone, OPT is the
    mean of the two on each axis, rounded down, so that `min <= opt <= max` always holds.

    Raises:
        UsageError: no `=`, a size that is no whole number, or a number of shapes other than 1 to 3.
    """
    name, equals, rest = text.rpartition("=")
    if not equals or not name:
        raise UsageError(f"--shape {text!r} names no input", "write --shape NAME=MIN[:OPT:MAX]")
    shapes = tuple(_parse_sizes(part, text) for part in rest.split(":"))
    if len(shapes) > 3:
        raise UsageError(f"--shape {text!r} has {len(shapes)} shapes; at most 3 (MIN:OPT:MAX)")
    if len(shapes) == 2 and len(shapes[0]) == len(shapes[1]):
        middle = tuple((a + b) // 2 for a, b in zip(shapes[0], shapes[1], strict=True))
        shapes = (shapes[0], middle, shapes[1])
    return ShapeRange(name=name, min=shapes[0], opt=shapes[len(shapes) // 2], max=shapes[-1])


def _parse_sizes(part: str, whole: str) -> Sizes:
    """One shape such as `1x3x640x640`."""
    if not _SIZES.fullmatch(part) or not part.isascii():
        raise UsageError(
            f"--shape {whole!r}: {part!r} is no shape",
            "a shape is whole numbers joined by x, such as 1x3x640x640",
        )
    if part == "scalar":
        return ()
    digits = [n.lstrip("0") or "0" for n in re.split("[x,]", part)]
    # By length first: Python refuses to read numbers of thousands of digits.
    large = [n for n in digits if len(n) > 10 or int(n) > LARGEST_DIM]
    if large:
        raise UsageError(
            f"--shape {_short(whole)}: {_short(large[0])} is larger than {LARGEST_DIM}"
        )
    return tuple(map(int, digits))


def _short(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:77]!r}..."
