"""Which packing of weights and bias a tactic reads, as a name: equal names, equal bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.kernels.generate import bundle_of
from trtplug.kernels.pair_catalog import PairTactic
from trtplug.kernels.pair_problem import PairProblem
from trtplug.kernels.tactic import Depthwise, Direct, Gemm, Stem, Tile

if TYPE_CHECKING:
    from trtplug.kernels.problem import Problem
    from trtplug.kernels.tactic import Tactic


def packing_of(tactic: Tactic | PairTactic, problem: Problem | PairProblem) -> str:
    """Name of the packing, such as `tiles_64x32`; it says what `pack_weights` looks at.

    Raises:
        TypeError: a tactic of one op and a problem of the other.
    """
    if isinstance(tactic, PairTactic) and isinstance(problem, PairProblem):
        return f"pair_{_tile(tactic.tile)}"
    if isinstance(tactic, PairTactic) or isinstance(problem, PairProblem):
        raise TypeError(f"{tactic.name} is no tactic for {type(problem).__name__}")
    match tactic:
        case Gemm():
            return f"tiles_{_tile(tactic.tile)}"
        case Stem():
            return f"stem_tiles_{_tile(tactic.tile)}"
        case Depthwise():
            return "taps"
        case Direct():
            return f"bundles_{tactic.layout}_{bundle_of(tactic, problem)}"


def _tile(tile: Tile) -> str:
    """Columns and depth; rows, warps and stages do not matter to weights."""
    return f"{tile.columns}x{tile.depth}"
