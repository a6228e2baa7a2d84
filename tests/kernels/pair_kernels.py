"""Compiles and runs pairs for tests, each kernel once a run of the tests."""

import functools

import numpy as np

from trtplug.kernels.compile import Kernel, compile_kernel
from trtplug.kernels.pair_check import random_pair_tensors, run_pair
from trtplug.kernels.pair_generate import generate_pair
from trtplug.target import Sm


@functools.lru_cache(maxsize=64)
def compiled(tactic, given, number):
    """The kernel of a tactic for a pair on an SM."""
    outcome = compile_kernel(generate_pair(tactic, given, Sm(number)), Sm(number), None)
    assert isinstance(outcome, Kernel), outcome.log
    return outcome


def checked(tactic, given, number, seed=0, sizes=None, **options):
    """The emulator's verdict, with inputs of a seed."""
    tensors = random_pair_tensors(given, sizes or given.x.opt, np.random.default_rng(seed))
    return run_pair(tactic, given, compiled(tactic, given, number).ptx, tensors, **options)
