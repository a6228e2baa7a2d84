"""Packing a pair: what is packed comes back, and nothing else is in it."""

import numpy as np
from hypothesis import given, settings

from tests.kernels.pair_problems import pair, pairs
from tests.kernels.unpacking import unpack_pair, unpack_pair_biases
from trtplug.kernels.pair_catalog import PAIR_TACTICS
from trtplug.kernels.pair_packing import pack_pair, pack_pair_biases


def numbered(shape):
    """No two numbers are equal, and none is 0."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.int64).reshape(shape)


@settings(max_examples=40, deadline=None)
@given(pairs())
def test_comes_back(given):
    weights = (numbered(given.depthwise.weight_shape), numbered(given.pointwise.weight_shape))
    biases = (numbered((given.channels,)), numbered((given.outputs,)))
    for tactic in PAIR_TACTICS:
        packed = pack_pair(tactic, given, weights)
        for one, back, original in zip(
            packed, unpack_pair(tactic, given, packed), weights, strict=True
        ):
            assert np.array_equal(back, original)
            # Each weight once, and zeros.
            assert np.count_nonzero(one) == original.size
        filled = pack_pair_biases(tactic, given, biases)
        for one, back, original in zip(
            filled, unpack_pair_biases(given, filled), biases, strict=True
        ):
            assert one.dtype == np.float32
            assert np.array_equal(back, original)
            assert np.count_nonzero(one) == original.size


def test_the_bias_between_has_all_lower_halves_first():
    given = pair((1, 20, 5, 5), 8)
    first, _ = pack_pair_biases(PAIR_TACTICS[0], given, (numbered((20,)), numbered((8,))))
    assert list(first) == [1, 2, 3, 4, 9, 10, 11, 12, 17, 18, 19, 20,
                           5, 6, 7, 8, 13, 14, 15, 16, 0, 0, 0, 0]  # fmt: skip
