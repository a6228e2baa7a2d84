"""Packing weights and biases: what is packed comes back, and nothing else is in it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.kernels import PAIRS, SHARED_BYTES, SINGLES, find_tactic
from tests.kernels.pair_problems import pair, pairs
from tests.kernels.problems import problem, problems
from tests.kernels.unpacking import unpack_bias, unpack_weights
from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.emulate import input_arrays, random_tensors
from trtplug.kernels.layout import BITS, to_device
from trtplug.ops.plugin_layer import LAYER_INPUTS, layer_type
from trtplug.target import Sm

ANY = st.one_of(problems(dtypes=("float16", "float")), pairs())


def numbered(shape):
    """No two weights are equal, and none is 0."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.int64).reshape(shape)


def packed_parts(tactic, given):
    """Weights and bias of each convolution, packed."""
    for conv, each in enumerate(given.convs):
        yield tactic.pack_weights(given, numbered(each.weight_shape), conv)
        yield tactic.pack_bias(given, numbered((each.outputs,)), conv)


@settings(max_examples=80, deadline=None)
@given(ANY)
def test_comes_back_for_every_legal_tactic(given):
    for tactic in CATALOG.legal(given, Sm(80), SHARED_BYTES):
        parts = packed_parts(tactic, given)
        for conv, each in enumerate(given.convs):
            weights, bias = next(parts), next(parts)
            found = unpack_weights(tactic, given, weights, conv)
            assert np.array_equal(found, numbered(each.weight_shape)), tactic.name
            # Each number once, and zeros.
            assert np.count_nonzero(weights) == found.size
            assert bias.dtype == np.float32
            found = unpack_bias(tactic, given, bias, conv)
            assert np.array_equal(found, numbered((each.outputs,))), tactic.name
            assert np.count_nonzero(bias) == each.outputs


def test_every_tactic_is_reached():
    some = (
        problem((1, 16, 8, 8), 24),
        problem((1, 16, 8, 8), 24, kernel=(1, 1), pads=(0, 0, 0, 0)),
        problem((1, 3, 8, 8), 24),
        problem((1, 16, 8, 8), 16, group=16),
        problem((1, 16, 8, 8), 16, dtype="float"),
    )
    reached = {t.name for p in some for t in CATALOG.legal(p, Sm(80), SHARED_BYTES)}
    assert reached == {t.name for t in SINGLES}


def test_a_tile_holds_a_row_of_outputs_with_its_chunks_swizzled():
    given = problem((1, 32, 8, 8), 64, kernel=(1, 1), pads=(0, 0, 0, 0))
    tactic = find_tactic("pointwise_128x64x32_s3")
    packed = tactic.pack_weights(given, numbered(given.weight_shape))
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
    packed = find_tactic(name).pack_bias(given, np.arange(1, outputs + 1, dtype=np.float16))
    assert (packed.dtype, packed.shape) == (np.float32, (length,))
    assert np.count_nonzero(packed) == outputs


def test_the_depthwise_bias_of_a_pair_has_all_lower_halves_first():
    first = PAIRS[0].pack_bias(pair((1, 20, 5, 5), 8), numbered((20,)))
    assert list(first) == [1, 2, 3, 4, 9, 10, 11, 12, 17, 18, 19, 20,
                           5, 6, 7, 8, 13, 14, 15, 16, 0, 0, 0, 0]  # fmt: skip


@given(ANY)
def test_one_name_one_packing(given):
    packed = {}
    for tactic in CATALOG.legal(given, Sm(90), SHARED_BYTES):
        parts = tuple(packed_parts(tactic, given))
        found = packed.setdefault(tactic.packing(given), parts)
        assert all(np.array_equal(a, b) for a, b in zip(found, parts, strict=True))


def test_another_tile_is_another_name():
    given = problem((1, 64, 14, 14), 64)
    keys = {t.packing(given) for t in CATALOG.legal(given, Sm(90), SHARED_BYTES)}
    assert {"tiles_64x32", "tiles_128x32", "bundles_HWC8_8"} <= keys
    assert len({t.packing(pair((1, 8, 9, 9), 8)) for t in PAIRS}) > 1


@given(ANY)
def test_tensors_are_as_formats_say(given):
    """The arrays that the emulator takes have these names, types and sizes, in this order."""
    tensors = random_tensors(given, given.x.opt, np.random.default_rng(0))
    for tactic in CATALOG.legal(given, Sm(90), SHARED_BYTES):
        formats, arrays = tactic.formats(given), input_arrays(tactic, given, tensors)
        names = LAYER_INPUTS[layer_type(given.op, residual=given.has_residual)]
        assert tuple(arrays) == names
        assert len(formats) == len(names) + 1
        for array, format_ in zip(arrays.values(), formats, strict=False):
            assert array.dtype.itemsize == BITS[format_.dtype].itemsize
        x, y = formats[0], formats[-1]
        assert arrays["x"].size == to_device(tensors.x, x.dtype, x.layout).size
        assert y.layout == tactic.layout
        assert not given.has_residual or formats[-2] == y
