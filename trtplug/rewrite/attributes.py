"""A site as attributes of the op that stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trtplug.ops.cbr import UNBOUNDED, CbrAttributes

if TYPE_CHECKING:
    from trtplug.rewrite.site import Site


def cbr_attributes(site: Site) -> CbrAttributes:
    """The attributes of the CBR node that stands for a site."""
    return CbrAttributes(
        kernel_shape=site.kernel_shape,
        strides=site.strides,
        pads=site.pads,
        dilations=site.dilations,
        group=site.group,
        activation=site.activation,
        alpha=_float32(site.alpha),
        beta=_float32(site.beta),
        min=_float32(max(site.minimum, -UNBOUNDED)),
        max=_float32(min(site.maximum, UNBOUNDED)),
        residual=site.residual,
    )


def _float32(value: float) -> float:
    """What an attribute holds: the overload's name must say the same."""
    return float(np.float32(value))
