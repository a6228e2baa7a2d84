"""How lanes are held: arrays over [blocks, threads], and the number types PTX gives their bits.

A register is one array of shape [blocks, threads], [1, threads], [blocks, 1] or [1, 1]: what does
not depend on the block, or on the thread, is kept once and broadcast. That is where the speed comes
from, since most addresses depend on the thread alone. Registers hold bits: any dtype of their width
will do, and who reads one views it as the type its instruction names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = npt.NDArray[Any]
Type = np.dtype[Any]

BOOL: Type = np.dtype(np.bool_)
U8: Type = np.dtype(np.uint8)
U16: Type = np.dtype(np.uint16)
U32: Type = np.dtype(np.uint32)
U64: Type = np.dtype(np.uint64)
S8: Type = np.dtype(np.int8)
S16: Type = np.dtype(np.int16)
S32: Type = np.dtype(np.int32)
S64: Type = np.dtype(np.int64)
F16: Type = np.dtype(np.float16)
F32: Type = np.dtype(np.float32)
F64: Type = np.dtype(np.float64)
C16: Type = np.dtype(np.complex128)
"""16 bytes that NumPy gathers and scatters in one move; never computed with."""

INTEGERS: dict[str, Type] = {
    "b8": U8, "u8": U8, "s8": S8, "b16": U16, "u16": U16, "s16": S16,
    "b32": U32, "u32": U32, "s32": S32, "b64": U64, "u64": U64, "s64": S64,
}  # fmt: skip
FLOATS: dict[str, Type] = {"f16": F16, "f32": F32, "f64": F64}
SCALARS: dict[str, Type] = INTEGERS | FLOATS | {"bf16": U16, "f16x2": U32, "bf16x2": U32}
"""The dtype that the bits of each PTX type are read as; bf16 and packed types stay bits."""

UNSIGNED: dict[int, Type] = {1: U8, 2: U16, 4: U32, 8: U64, 16: C16}
"""By width in bytes."""

WARP = 32


def read_as(x: Array, dtype: Type) -> Array:
    """The bits of `x` as `dtype`; a wider register gives its low bits."""
    if x.dtype is dtype:
        return x
    have, want = x.dtype.itemsize, dtype.itemsize
    if have == want:
        return x.view(dtype)
    low = x.view(UNSIGNED[have]).astype(UNSIGNED[want])
    return low if have > want and low.dtype is dtype else low.view(dtype)


def widened(x: Array, width: int) -> Array:
    """`x` in a register of `width` bytes: sign-extended where its type is signed."""
    if x.dtype.itemsize == width:
        return x
    if x.dtype.kind == "i":
        return x.astype(f"i{width}")
    return x.view(UNSIGNED[x.dtype.itemsize]).astype(UNSIGNED[width])


def constant(value: int, width: int) -> Array:
    """An integer of `width` bytes, in every lane."""
    return np.full((1, 1), value % (1 << 8 * width), UNSIGNED[width])


def joined(parts: Sequence[Array]) -> Array:
    """Elements side by side as one wider element, the first in the lowest bits."""
    shape = np.broadcast_shapes(*[p.shape for p in parts])
    out = np.empty((*shape, len(parts)), parts[0].dtype)
    for i, part in enumerate(parts):
        out[..., i] = part
    return out.view(UNSIGNED[out.itemsize * len(parts)])[..., 0]


def split(x: Array, count: int) -> Array:
    """The inverse of `joined`: each element as `count` narrower ones along a last axis."""
    part = UNSIGNED[x.itemsize // count]
    return np.ascontiguousarray(x).view(part).reshape(*x.shape, count)


def bf16_to_f32(bits: Array) -> Array:
    """bf16 bits of 16 as fp32: they are its upper half."""
    return (bits.view(U16).astype(U32) << np.uint32(16)).view(F32)


def f32_to_bf16(x: Array) -> Array:
    """fp32 rounded to the nearest bf16, ties to even, as bits; NaN stays NaN."""
    bits = x.view(U32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(U16)
    return np.where(np.isnan(x), U16.type(0x7FFF), rounded)


def f32_to_tf32(x: Array) -> Array:
    """fp32 rounded to 10 bits of mantissa, ties away from zero, as `cvt.rna.tf32` does."""
    bits = x.view(U32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(F32)
    return np.where(np.isfinite(x), rounded, x)


def spread(x: Array, shape: tuple[int, int]) -> Array:
    """`x` broadcast to `shape`; `np.broadcast_to` alone takes longer than many an instruction."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def warps(x: Array, threads: int) -> Array:
    """[rows, threads or 1] as [rows, warps, 32]."""
    rows = x.shape[0]
    return spread(x, (rows, threads)).reshape(rows, threads // WARP, WARP)
