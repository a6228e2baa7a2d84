"""What a tactic's tensors are: element type and layout of each, in the order of its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.generate import x_dtype
from trtplug.kernels.pair_catalog import PairTactic
from trtplug.kernels.pair_problem import PairProblem
from trtplug.kernels.tactic import Layout, Stem

if TYPE_CHECKING:
    from trtplug.kernels.problem import Problem
    from trtplug.kernels.tactic import Tactic


@dataclass(frozen=True, slots=True)
class TensorFormat:
    """One input or output of a plugin's layer."""

    dtype: str
    """`float`, `float16` or `bfloat16`."""
    layout: Layout


def formats_of(
    tactic: Tactic | PairTactic, problem: Problem | PairProblem
) -> tuple[TensorFormat, ...]:
    """The inputs in the order of `trtplug.ops.plugin_layer.LAYER_INPUTS`, then y."""
    layout = tactic.layout
    own = TensorFormat(problem.dtype, layout)
    packed = [TensorFormat(problem.dtype, "LINEAR"), TensorFormat("float", "LINEAR")]
    x = own
    if isinstance(problem, PairProblem) or isinstance(tactic, PairTactic):
        packed *= 2
    elif isinstance(tactic, Stem):
        x = TensorFormat(x_dtype(tactic, problem), "LINEAR")
    return (x, *packed, *([own] if problem.has_residual else []), own)
