"""Packing weights: what is packed comes back, and nothing else is in it."""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.kernels.problems import problem, problems
from tests.kernels.unpacking import unpack_weights
from trtplug.kernels.catalog import TACTICS, find_tactic
from trtplug.kernels.packing import pack_bias, pack_weights
from trtplug.kernels.space import legal_tactics
from trtplug.target import Sm


def numbered(shape):
    """No two weights are equal, and none is 0."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.int64).reshape(shape)


@settings(max_examples=60, deadline=None)
@given(problems(dtypes=("float16", "float")))
def test_comes_back_for_every_legal_tactic(given):
    weights = numbered(given.weight_shape)
    for tactic in legal_tactics(given, Sm(80), 48 * 1024):
        packed = pack_weights(tactic, given, weights)
        assert np.array_equal(unpack_weights(tactic, given, packed), weights), tactic.name
        # Each weight once, and zeros.
        assert np.count_nonzero(packed) == weights.size


def test_every_tactic_is_reached():
    some = (
        problem((1, 16, 8, 8), 24),
        problem((1, 16, 8, 8), 24, kernel=(1, 1), pads=(0, 0, 0, 0)),
        problem((1, 3, 8, 8), 24),
        problem((1, 16, 8, 8), 16, group=16),
        problem((1, 16, 8, 8), 16, dtype="float"),
    )
    reached = {t.name for p in some for t in legal_tactics(p, Sm(80), 48 * 1024)}
    assert reached == {t.name for t in TACTICS}


def test_a_tile_holds_a_row_of_outputs_with_its_chunks_swizzled():
    given = problem((1, 32, 8, 8), 64, kernel=(1, 1), pads=(0, 0, 0, 0))
    tactic = find_tactic("pointwise_128x64x32_s3")
    packed = pack_weights(tactic, given, numbered(given.weight_shape))
    assert packed.shape == (1, 1, 1, 64, 32)
    tile = packed[0, 0, 0].reshape(64, 4, 8)
    # By hand: row 2 is the first whose chunks change places, with their neighbours.
    assert list(tile[0, :, 0]) == [1, 9, 17, 25]
    assert list(tile[2, :, 0]) == [64 + 9, 64 + 1, 64 + 25, 64 + 17]
    # Any 8 rows in turn, at one chunk, lie in 8 different sixteenths of 128 bytes.
    for first in range(0, 64, 8):
        places = {
            (row % 2) * 4 + list(tile[row, :, 0] % 32).index(1) for row in range(first, first + 8)
        }
        assert len(places) == 8


@pytest.mark.parametrize(
    ("name", "outputs", "group", "length"),
    [
        ("igemm_128x64x32_s3", 72, 1, 128),
        ("igemm_64x32x64_s3", 48, 2, 64),
        ("depthwise_1", 12, 12, 16),
        ("direct_hwc8", 12, 1, 16),
        ("direct_linear", 9, 3, 9),
    ],
)
def test_a_bias_is_fp32_and_filled_up_with_zeros(name, outputs, group, length):
    channels = outputs if group == outputs else 16 * group
    given = problem((1, channels, 8, 8), outputs, group=group)
    packed = pack_bias(find_tactic(name), given, np.arange(1, outputs + 1, dtype=np.float16))
    assert (packed.dtype, packed.shape) == (np.float32, (length,))
    assert np.count_nonzero(packed) == outputs
