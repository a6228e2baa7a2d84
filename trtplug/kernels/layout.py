"""Tensors as a GPU holds them: bits of an element type, in LINEAR or in HWC8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.kernels.problem import padded
from trtplug.tensor import FLOATS

if TYPE_CHECKING:
    from trtplug.kernels.family import Layout
    from trtplug.kernels.problem import Array


BITS: dict[str, np.dtype[Any]] = {t.name: np.dtype(f"uint{t.bits}") for t in FLOATS}
"""Type -> unsigned integers of its size."""

NAN_BITS = {element.name: element.nan for element in FLOATS}
"""Type -> a NaN, to poison what must not be read or left as it is."""


def to_bits(values: Array, dtype: str) -> Array:
    """Numbers as bits of `dtype`, rounded to the nearest, ties to even."""
    if dtype == "float":
        return np.ascontiguousarray(values, np.float32).view(np.uint32)
    if dtype == "float16":
        return np.ascontiguousarray(values, np.float16).view(np.uint16)
    wide = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = wide + 0x7FFF + ((wide >> 16) & 1)
    return np.where(np.isnan(values), NAN_BITS[dtype], rounded >> 16).astype(np.uint16)


def from_bits(bits: Array, dtype: str) -> Array:
    """The inverse of `to_bits`, as float32."""
    if dtype == "float":
        return bits.view(np.float32)
    if dtype == "float16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_device(values: Array, dtype: str, layout: Layout) -> Array:
    """A tensor [N, C, H, W] of numbers as the flat bits of a GPU's buffer.

    The padding lanes of HWC8 are NaN: a kernel must not trust them.
    """
    bits = to_bits(values, dtype)
    if layout == "LINEAR":
        return bits.reshape(-1)
    batch, channels, height, width = bits.shape
    filled = np.full((batch, height, width, padded(channels)), NAN_BITS[dtype], bits.dtype)
    filled[..., :channels] = bits.transpose(0, 2, 3, 1)
    return filled.reshape(-1)


def from_device(bits: Array, dtype: str, layout: Layout, sizes: tuple[int, ...]) -> Array:
    """The inverse of `to_device` for a tensor of `sizes` [N, C, H, W], as float32."""
    if layout == "LINEAR":
        return from_bits(bits, dtype).reshape(sizes)
    batch, channels, height, width = sizes
    lanes = from_bits(bits, dtype).reshape(batch, height, width, padded(channels))
    return np.ascontiguousarray(lanes[..., :channels].transpose(0, 3, 1, 2))


def padding_lanes(bits: Array, sizes: tuple[int, ...]) -> Array:
    """The bits of HWC8's padding lanes of a tensor of `sizes`; empty where there are none."""
    batch, channels, height, width = sizes
    return bits.reshape(batch, height, width, padded(channels))[..., channels:]
