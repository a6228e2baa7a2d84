"""What tactics say of their tensors is what they are run with."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from tests.kernels.kernels import SHARED_BYTES
from tests.kernels.pair_legal import legal_pair_tactics
from tests.kernels.pair_problems import pairs
from tests.kernels.problems import problems
from trtplug.kernels.formats import formats_of
from trtplug.kernels.generate import x_dtype
from trtplug.kernels.layout import BITS, to_device
from trtplug.kernels.pair_check import pair_arrays, random_pair_tensors
from trtplug.kernels.run_check import input_arrays, random_tensors
from trtplug.kernels.space import legal_tactics
from trtplug.ops.plugin_layer import LAYER_INPUTS, layer_type
from trtplug.target import Sm


def check(arrays, formats, op, has_residual) -> None:
    """The arrays that the emulator takes have these names and types, in this order."""
    names = LAYER_INPUTS[layer_type(op, residual=has_residual)]
    assert tuple(arrays) == names
    assert len(formats) == len(names) + 1
    for array, said in zip(arrays.values(), formats, strict=False):
        assert array.dtype.itemsize == BITS[said.dtype].itemsize


@given(problems(("float", "float16")))
def test_tensors_of_a_convolution(given):
    rng = np.random.default_rng(0)
    for tactic in legal_tactics(given, Sm(90), SHARED_BYTES):
        tensors = random_tensors(given, given.x.opt, rng, x_dtype(tactic, given))
        formats = formats_of(tactic, given)
        arrays = input_arrays(tactic, given, tensors)
        check(arrays, formats, "CBR", given.has_residual)
        x, y = formats[0], formats[-1]
        assert arrays["x"].size == to_device(tensors.x, x.dtype, x.layout).size
        assert y.layout == tactic.layout
        if given.has_residual:
            assert formats[-2] == y


@given(pairs())
def test_tensors_of_a_pair(given):
    tensors = random_pair_tensors(given, given.x.opt, np.random.default_rng(0))
    for tactic in legal_pair_tactics(given, Sm(90), SHARED_BYTES):
        check(
            pair_arrays(tactic, given, tensors),
            formats_of(tactic, given),
            "CBRPair",
            given.has_residual,
        )
