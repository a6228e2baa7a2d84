"""Folds scales and shifts into a convolution's weight and bias: in float64, rounded once.

With x the input, s and t the scale and shift before, u and v those after, for output channel m:

    y[m] = u[m] * (sum over c, kernel of w[m, c] * (s[c] * x[c] + t[c]) + b[m]) + v[m]

so the folded weight is `u[m] * w[m, c] * s[c]` and the folded bias
`u[m] * (b[m] + sum over c, kernel of w[m, c] * t[c]) + v[m]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from trtplug.model.constants import Constant
    from trtplug.model.convolution import Convolution
    from trtplug.rewrite.affine import Affine

    Array = np.ndarray[Any, np.dtype[Any]]


def fold(
    weight: Constant, bias: Constant | None, geometry: Convolution, before: Affine, after: Affine
) -> tuple[Array, Array]:
    """Weight [M, C / group, kH, kW] and bias [M] with both steps in, in the weight's own type."""
    stored = weight.read()
    scale = np.broadcast_to(after.scale, geometry.channels)
    shift = np.broadcast_to(after.shift, geometry.channels)
    with np.errstate(over="ignore", invalid="ignore"):
        folded = stored.astype(np.float64)
        total = _input_shift(folded, geometry, before)
        if bias is not None:
            total = total + bias.read().astype(np.float64)
        folded *= _per_weight(before.scale, geometry) * scale.reshape(-1, 1, 1, 1)
        return folded.astype(stored.dtype), (total * scale + shift).astype(stored.dtype)


def _per_weight(channel_values: Array, geometry: Convolution) -> Array:
    """Values of the input channels [C] (or one for all), laid out to meet the weight."""
    groups, per_group = geometry.group, geometry.channels_per_group
    grouped = np.broadcast_to(channel_values, groups * per_group).reshape(groups, per_group)
    return np.repeat(grouped, geometry.channels // groups, axis=0).reshape(-1, per_group, 1, 1)


def _input_shift(weight: Array, geometry: Convolution, before: Affine) -> Array:
    """What a shift of the input adds to each output channel."""
    if not np.any(before.shift):
        return np.zeros(geometry.channels)
    taps: Array = weight.sum(axis=(2, 3))
    total: Array = (taps * _per_weight(before.shift, geometry)[:, :, 0, 0]).sum(axis=1)
    return total
