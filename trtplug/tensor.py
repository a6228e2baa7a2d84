"""Tensor facts that every stage shares: element types, shapes, and the ranges of dynamic inputs."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from trtplug.errors import UsageError

Dim = int | str | None
"""A size; the name of a dynamic axis; or None where nothing is known."""

Shape = tuple[Dim, ...]

Sizes = tuple[int, ...]

LARGEST_DIM = 2**31 - 1
"""TensorRT's dimensions are 32-bit in its profiles."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type with its name in each library, and its size."""

    name: str
    """ONNX's name in lower case: what documents hold."""
    onnx: int
    """Number in ONNX's `TensorProto.DataType`."""
    bits: int
    """Of one element; 0 where they vary (strings)."""
    word: str
    """Short name, in tables and for `--precision`; in upper case, TensorRT's in format strings."""
    layer: str = ""
    """TensorRT's name in layer listings; empty where it has no such type."""
    numpy: str = ""
    """NumPy's name; empty where NumPy itself has no such type."""
    tensorrt: str = ""
    """Member of TensorRT's `DataType`; this and the rest are known for `FLOATS` alone."""
    cuda: str = ""
    """Type in plugins/common/dtype.cuh."""
    nan: int = 0
    """Bits of a quiet NaN."""
    largest: float = 0.0
    smallest_normal: float = 0.0

    @property
    def bytes(self) -> int:
        """Of one element; types below 8 bits take a byte where they are not packed."""
        return max(1, self.bits // 8)


FLOATS = (
    ElementType(
        *("float", 1, 32, "fp32", "Float", "float32", "FLOAT", "float"),
        *(0x7FC00000, 3.4028234663852886e38, 2.0**-126),
    ),
    ElementType(
        *("float16", 10, 16, "fp16", "Half", "float16", "HALF", "trtplug::Half"),
        *(0x7E00, 65504.0, 2.0**-14),
    ),
    ElementType(
        *("bfloat16", 16, 16, "bf16", "BFloat16", "", "BF16", "trtplug::Bfloat16"),
        *(0x7FC0, 3.3895313892515355e38, 2.0**-126),
    ),
)
"""What CBR and CBRPair compute in."""

ELEMENT_TYPES = (
    *FLOATS,
    ElementType("uint8", 2, 8, "uint8", "UInt8", "uint8"),
    ElementType("int8", 3, 8, "int8", "Int8", "int8"),
    ElementType("uint16", 4, 16, "uint16", "", "uint16"),
    ElementType("int16", 5, 16, "int16", "", "int16"),
    ElementType("int32", 6, 32, "int32", "Int32", "int32"),
    ElementType("int64", 7, 64, "int64", "Int64", "int64"),
    ElementType("string", 8, 0, "string"),
    ElementType("bool", 9, 8, "bool", "Bool", "bool"),
    ElementType("double", 11, 64, "double", "", "float64"),
    ElementType("uint32", 12, 32, "uint32", "", "uint32"),
    ElementType("uint64", 13, 64, "uint64", "", "uint64"),
    ElementType("complex64", 14, 64, "complex64", "", "complex64"),
    ElementType("complex128", 15, 128, "complex128", "", "complex128"),
    ElementType("float8e4m3fn", 17, 8, "fp8", "FP8"),
    ElementType("float8e4m3fnuz", 18, 8, "float8e4m3fnuz"),
    ElementType("float8e5m2", 19, 8, "float8e5m2"),
    ElementType("float8e5m2fnuz", 20, 8, "float8e5m2fnuz"),
    ElementType("uint4", 21, 4, "uint4"),
    ElementType("int4", 22, 4, "int4", "Int4"),
    ElementType("float4e2m1", 23, 4, "fp4", "FP4"),
    ElementType("float8e8m0", 24, 8, "float8e8m0"),
    ElementType("uint2", 25, 2, "uint2"),
    ElementType("int2", 26, 2, "int2"),
    ElementType("float6e2m3", 27, 6, "float6e2m3"),
    ElementType("float6e3m2", 28, 6, "float6e3m2"),
)
"""Every type that ONNX has, by onnx.proto of ONNX 1.23."""


@functools.cache
def _by_name() -> dict[str | int, ElementType]:
    found: dict[str | int, ElementType] = {}
    for element in ELEMENT_TYPES:
        names = (element.name, element.word, element.layer.lower(), element.onnx)
        found.update((name, element) for name in names if name)
    return found


def find_element_type(name: str | int) -> ElementType | None:
    """The type of a name in documents, tables or layer listings, or of ONNX's number."""
    return _by_name().get(name.lower() if isinstance(name, str) else name)


def element_type(name: str | int) -> ElementType:
    """As `find_element_type`.

    Raises:
        KeyError: there is no such type.
    """
    found = find_element_type(name)
    if found is None:
        raise KeyError(name)
    return found


def dtype_name(elem_type: int) -> str:
    """ONNX's name of an element type in lower case; `undefined` for a number it does not know."""
    found = find_element_type(elem_type)
    return found.name if found else "undefined"


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


def window_positions(size: int, reach: int, stride: int) -> int:
    """Positions of a sliding window on one axis: the output size of a convolution or a pooling.

    Source: ONNX, operator Conv, and TensorRT, IConvolutionLayer, both with rounding down.

    Args:
        size: of the input, in elements; may be symbolic.
        reach: all padding of the axis less the window's extent, `dilation * (kernel - 1) + 1`.
        stride: in elements.
    """
    return (size + reach) // stride + 1


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
