"""Tactics with one packing key read the same bytes, and those with two do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from tests.kernels.kernels import SHARED_BYTES
from tests.kernels.pair_legal import legal_pair_tactics
from tests.kernels.pair_problems import pair, pairs
from tests.kernels.problems import problem, problems
from trtplug.kernels.packing import pack_bias, pack_weights
from trtplug.kernels.packing_key import packing_of
from trtplug.kernels.pair_catalog import PAIR_TACTICS
from trtplug.kernels.pair_packing import pack_pair, pack_pair_biases
from trtplug.kernels.space import legal_tactics
from trtplug.target import Sm


def numbers(shape) -> np.ndarray:
    """None of them zero, all of them different."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.uint32).reshape(shape)


@given(problems(("float", "float16")))
def test_one_key_one_packing(given):
    packed = {}
    for tactic in legal_tactics(given, Sm(90), SHARED_BYTES):
        weights = pack_weights(tactic, given, numbers(given.weight_shape))
        bias = pack_bias(tactic, given, numbers((given.outputs,)))
        found = packed.setdefault(packing_of(tactic, given), (weights, bias))
        assert np.array_equal(found[0], weights)
        assert np.array_equal(found[1], bias)


@given(pairs())
def test_one_key_one_packing_of_a_pair(given):
    packed = {}
    both = (numbers(given.depthwise.weight_shape), numbers(given.pointwise.weight_shape))
    biases = (numbers((given.channels,)), numbers((given.outputs,)))
    for tactic in legal_pair_tactics(given, Sm(90), SHARED_BYTES):
        parts = (*pack_pair(tactic, given, both), *pack_pair_biases(tactic, given, biases))
        found = packed.setdefault(packing_of(tactic, given), parts)
        assert all(itertools.starmap(np.array_equal, zip(found, parts, strict=True)))


def test_another_tile_is_another_key():
    given = problem((1, 64, 14, 14), 64)
    keys = {packing_of(t, given) for t in legal_tactics(given, Sm(90), SHARED_BYTES)}
    assert {"tiles_64x32", "tiles_128x32", "bundles_HWC8_8"} <= keys
    assert len({packing_of(t, pair((1, 8, 9, 9), 8)) for t in PAIR_TACTICS}) > 1


def test_a_tactic_of_the_other_op_is_refused():
    with pytest.raises(TypeError, match="no tactic for Problem"):
        packing_of(PAIR_TACTICS[0], problem((1, 64, 14, 14), 64))
