"""The pair tactics that may run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.kernels.pair_space import list_pair_tactics
from trtplug.kernels.space import DEFAULT_SHARED_BYTES

if TYPE_CHECKING:
    from trtplug.kernels.pair_catalog import PairTactic
    from trtplug.kernels.pair_problem import PairProblem
    from trtplug.target import Sm


def legal_pair_tactics(
    problem: PairProblem, sm: Sm, shared_bytes: int = DEFAULT_SHARED_BYTES
) -> tuple[PairTactic, ...]:
    """Those that may run."""
    found = list_pair_tactics(problem, sm, shared_bytes)
    return tuple(c.tactic for c in found if c.exclusion is None)
