"""Compiles and runs tactics for tests, each kernel once a run of the tests."""

import functools

import numpy as np

from trtplug.kernels.catalog import CATALOG
from trtplug.kernels.compile import CompiledKernel, compile_kernel
from trtplug.kernels.emulate import random_tensors, run_tactic
from trtplug.target import Sm

SHARED_BYTES = 48 * 1024
"""With the tactics that are not within the default."""

SINGLES = tuple(t for t in CATALOG.tactics if t.op == "CBR")
PAIRS = tuple(t for t in CATALOG.tactics if t.op == "CBRPair")


def find_tactic(name):
    """The tactic of that name."""
    found = CATALOG.find(name)
    assert found is not None, name
    return found


@functools.lru_cache(maxsize=256)
def compiled(tactic, given, number):
    """The kernel of a tactic for a problem on an SM."""
    outcome = compile_kernel(tactic.generate(given, Sm(number)), Sm(number), None)
    assert isinstance(outcome, CompiledKernel), outcome.log
    return outcome


def checked(tactic, given, number, seed=0, sizes=None, **options):
    """The emulator's verdict, with inputs of a seed."""
    tensors = random_tensors(given, sizes or given.x.opt, np.random.default_rng(seed))
    return run_tactic(tactic, given, compiled(tactic, given, number).ptx, tensors, **options)


def assert_clean(result, what):
    """Right numbers and nothing found."""
    assert result.passed, (what, result.relative_error, result.problems, *map(str, result.findings))
