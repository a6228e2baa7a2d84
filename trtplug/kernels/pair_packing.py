"""Weights and biases of a pair as its kernel reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.kernels.packing import pack_bias, pack_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem


if TYPE_CHECKING:
    Array = NDArray[Any]


_HALF = 4
"""Channels of a chunk that one load of FP32 brings."""


def pack_pair(
    tactic: PairTactic, problem: PairProblem, weights: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Depthwise weights [channels, 1, kH, kW] and pointwise ones [outputs, channels, 1, 1].

    Any type of element goes; what is filled up is zero.
    """
    first = pack_weights(tactic.first, problem.depthwise, weights[0])
    return first, pack_weights(tactic.second, problem.pointwise, weights[1])


def pack_pair_biases(
    tactic: PairTactic, problem: PairProblem, biases: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Both biases in FP32, filled up with zeros to what a kernel reads of them.

    Of the depthwise one first the lower half of every chunk of 8, then the upper ones: so lanes
    beside each other read what lies beside each other.
    """
    first = pack_bias(tactic.first, problem.depthwise, biases[0])
    halves = first.reshape(-1, 2, _HALF).swapaxes(0, 1)
    second = pack_bias(tactic.second, problem.pointwise, biases[1])
    return np.ascontiguousarray(halves).reshape(-1), second
