"""Compiles and runs tactics for tests, each kernel once a run of the tests."""

import functools

import numpy as np

from trtplug.kernels.compile import Kernel, compile_kernel
from trtplug.kernels.generate import generate
from trtplug.kernels.run_check import random_tensors, run_tactic
from trtplug.kernels.tactic import Stem
from trtplug.target import Sm

SHARED_BYTES = 48 * 1024
"""With the tactics that are not within the default."""


@functools.lru_cache(maxsize=256)
def compiled(tactic, given, number):
    """The kernel of a tactic for a problem on an SM."""
    outcome = compile_kernel(generate(tactic, given, Sm(number)), Sm(number), None)
    assert isinstance(outcome, Kernel), outcome.log
    return outcome


def checked(tactic, given, number, seed=0, sizes=None, **options):
    """The emulator's verdict, with inputs of a seed."""
    rng = np.random.default_rng(seed)
    dtype = tactic.x_dtype if isinstance(tactic, Stem) else None
    tensors = random_tensors(given, sizes or given.x.opt, rng, dtype)
    return run_tactic(tactic, given, compiled(tactic, given, number).ptx, tensors, **options)


def assert_clean(result, what):
    """Right numbers and nothing found."""
    assert result.passed, (what, result.relative_error, result.problems, *map(str, result.findings))
