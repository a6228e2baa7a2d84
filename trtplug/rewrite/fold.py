"""Folds scales and shifts into a convolution's weight and bias: in float64, rounded once.

With x the input, s and t the scale and shift before, u and v those after, for output channel m:

    y[m] = u[m] * (sum over c, kernel of w[m, c] * (s[c] * x[c] + t[c]) + b[m]) + v[m]

so the folded weight is `u[m] * w[m, c] * s[c]` and the folded bias
`u[m] * (b[m] + sum over c, kernel of w[m, c] * t[c]) + v[m]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import helper

if TYPE_CHECKING:
    from trtplug.model.constants import Constant
    from trtplug.model.convolution import Convolution
    from trtplug.rewrite.affine import Affine

    Array = np.ndarray[Any, np.dtype[Any]]


def fold_weight(weight: Constant, geometry: Convolution, before: Affine, after: Affine) -> Array:
    """The weight [M, C / group, kH, kW] with both scales in it, in its own type."""
    stored = weight.read()
    scale = np.broadcast_to(after.scale, geometry.channels).reshape(-1, 1, 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        folded = stored.astype(np.float64)
        folded *= _per_weight(before.scale, geometry) * scale
        return folded.astype(stored.dtype)


def fold_bias(
    weight: Constant,
    bias: Constant | None,
    geometry: Convolution,
    before: Affine,
    after: Affine,
    dtype: np.dtype[Any] | None = None,
) -> Array:
    """The bias [M] with both steps in it.

    In `dtype`, or in the type of the bias, or of the weight where there is none.
    """
    total = _input_shift(weight, geometry, before)
    dtype = dtype or helper.tensor_dtype_to_np_dtype((bias or weight).elem_type)
    if bias is not None:
        total = total + bias.read().astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        result: Array = (total * after.scale + after.shift).astype(dtype)
    return np.broadcast_to(result, geometry.channels)


def _per_weight(channel_values: Array, geometry: Convolution) -> Array:
    """Values of the input channels [C] (or one for all), laid out to meet the weight."""
    groups, per_group = geometry.group, geometry.channels_per_group
    grouped = np.broadcast_to(channel_values, groups * per_group).reshape(groups, per_group)
    return np.repeat(grouped, geometry.channels // groups, axis=0).reshape(-1, per_group, 1, 1)


def _input_shift(weight: Constant, geometry: Convolution, before: Affine) -> Array:
    """What a shift of the input adds to each output channel."""
    if not np.any(before.shift):
        return np.zeros(geometry.channels)
    taps: Array = weight.read().astype(np.float64).sum(axis=(2, 3))
    total: Array = (taps * _per_weight(before.shift, geometry)[:, :, 0, 0]).sum(axis=1)
    return total
