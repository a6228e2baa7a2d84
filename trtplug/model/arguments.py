"""Arguments as Python callers write them, as the values that the command line makes too."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from trtplug.errors import UsageError
from trtplug.model.precision_options import PrecisionOptions
from trtplug.tensor import ShapeRange, parse_shape_range

PathLike = str | os.PathLike[str]

Shapes = Mapping[str, str | Sequence[int]] | Iterable[str]
"""`{"x": "1x3x640x640"}`, `{"x": (1, 3, 640, 640)}` or `["x=1x3x640x640"]`. A text may be a range:
`MIN:OPT:MAX`, or `MIN:MAX` (OPT is the mean of the two, rounded down)."""

Precision = Literal["keep", "fp16", "bf16"]
IoPrecision = Literal["keep", "match"]


def to_path(given: PathLike) -> Path:
    """A path; whether anything is there is asked later.

    Raises:
        UsageError: no system takes it.
    """
    text = os.fspath(given)
    if not text.strip():
        raise UsageError("a path is empty", "an unset variable of a script, perhaps")
    if "\0" in text:
        raise UsageError(f"the path {text!r} holds a null byte", "leave it out")
    return Path(text)


def to_texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """One text or several; a text alone is not taken for its letters.

    Raises:
        UsageError: one of them is empty, or no text.
    """
    texts: tuple[object, ...] = (given,) if isinstance(given, str) else tuple(given)
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"{name} has {text!r}", "it takes texts that are not empty")
    return tuple(map(str, texts))


def to_ranges(shapes: Shapes) -> tuple[ShapeRange, ...]:
    """One range for each input that is named.

    Raises:
        UsageError: a shape that cannot be read.
    """
    if isinstance(shapes, Mapping):
        pairs = ((name, _sizes(sizes)) for name, sizes in shapes.items())
        return tuple(parse_shape_range(f"{name}={sizes}") for name, sizes in pairs)
    return tuple(map(parse_shape_range, to_texts("shapes", shapes)))


def _sizes(given: str | Sequence[int]) -> str:
    return given if isinstance(given, str) else "x".join(map(str, given)) or "scalar"


def to_precision(target: Precision, io: IoPrecision, keep_fp32: Iterable[str]) -> PrecisionOptions:
    """What to compute in.

    Raises:
        UsageError: a name that is none of the known ones.
    """
    for name, value, known in (
        ("precision", target, get_args(Precision)),
        ("io-precision", io, get_args(IoPrecision)),
    ):
        if value not in known:
            raise UsageError(f"unknown --{name} {value!r}", f"it is one of {', '.join(known)}")
    return PrecisionOptions(target=target, io=io, keep_fp32=to_texts("keep_fp32", keep_fp32))
