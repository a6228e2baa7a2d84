"""The tactics that are offered for one problem: all legal ones that read one packing of weights.

An engine holds a site's weights once, so all kernels that TensorRT may choose from must read them
as they lie. The tactic that is predicted to be the fastest fixes the packing. It is predicted
before anything is compiled, with the registers that the kernel's launch bounds leave it. Where the
GPU's figures are not known, the first legal tactic of a stated order fixes it. Nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.either import (
    EitherTactic,
    blocks_to_try_either,
    list_either,
    predict_either,
    shared_bytes_of_either,
    threads_of_either,
    x_dtype_of_either,
)
from trtplug.kernels.packing_key import packing_of
from trtplug.kernels.pair_catalog import PairTactic
from trtplug.kernels.tactic import Depthwise, Direct, Stem
from trtplug.kernels.usage import LIMITS, Usage
from trtplug.profile import GpuProfile
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtplug.kernels.either import EitherCandidate, EitherProblem


_MOST_REGISTERS = 255
"""Of a thread, on every SM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kernels are to run."""

    sm: Sm
    profile: GpuProfile | None
    """Figures of the GPU; None where there are none."""
    shared_bytes: int
    """What a block may take of shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Tactics that read one packing."""

    tactics: tuple[EitherTactic, ...]
    """The one that fixed the packing first, the others in the same order."""
    packing: str
    why: str
    """Why this packing, in words."""


def choose_offer(
    problem: EitherProblem,
    place: Place,
    allowed: Callable[[str], bool] = lambda _: True,
    measured: str | None = None,
) -> Offer | str:
    """What is offered for a problem, or why nothing can be.

    Args:
        problem: what is to be computed.
        place: where.
        allowed: whether a tactic of that name may be offered.
        measured: a tactic whose packing is to be taken where it is legal, whatever is predicted.
    """
    candidates = list_either(problem, place.sm, place.shared_bytes)
    # A kernel that reads another type than the tensor has would need a cast before it.
    legal = [
        c.tactic
        for c in candidates
        if c.exclusion is None and x_dtype_of_either(c.tactic, problem) == problem.dtype
    ]
    if not legal:
        return f"no tactic is legal on {place.sm}: {_why_none(candidates)}"
    usable = [t for t in legal if allowed(t.name)]
    if not usable:
        return f"--plugin-tactics leaves none of {', '.join(t.name for t in legal)}"
    ordered, why = _ordered(usable, problem, place)
    first = next((t for t in ordered if t.name == measured), None)
    if first is not None:
        why = f"{measured} is the tactic that was measured"
    packing = packing_of(first or ordered[0], problem)
    same = [t for t in ordered if packing_of(t, problem) == packing]
    same.sort(key=lambda t: t is not first)
    return Offer(tactics=tuple(same), packing=packing, why=why)


def _ordered(
    tactics: Sequence[EitherTactic], problem: EitherProblem, place: Place
) -> tuple[list[EitherTactic], str]:
    """The tactics, the one to fix the packing first, and why it is that one."""
    times = [_predicted_us(t, problem, place) for t in tactics]
    known = {t.name: time for t, time in zip(tactics, times, strict=True) if time is not None}
    if len(known) < len(tactics) or place.profile is None:
        ordered = sorted(tactics, key=_stated_order)
        return ordered, f"{ordered[0].name} is first in order: no figures of the GPU to predict by"
    ordered = sorted(tactics, key=lambda t: (known[t.name], t.number))
    time = known[ordered[0].name]
    name = place.profile.name
    return ordered, f"{ordered[0].name} is predicted fastest on {name}: {time:.1f} us, not measured"


def _stated_order(tactic: EitherTactic) -> tuple[int, int]:
    """Kernels for a special case first, the implicit GEMMs, and last what takes everything."""
    kinds: tuple[type, ...] = (Depthwise, Stem)
    if isinstance(tactic, kinds):
        return 0, tactic.number
    return (2 if isinstance(tactic, Direct) else 1), tactic.number


def _predicted_us(tactic: EitherTactic, problem: EitherProblem, place: Place) -> float | None:
    if place.profile is None:
        return None
    usage = intended_usage(tactic, problem, place.sm)
    prediction = predict_either(tactic, problem, place.profile, usage, problem.x.opt)
    return prediction.predicted_us if prediction is not None else None


def intended_usage(tactic: EitherTactic, problem: EitherProblem, sm: Sm) -> Usage:
    """Resources that a kernel is to have when it is compiled: by its launch bounds."""
    blocks = blocks_to_try_either(tactic, problem, sm)[0]
    # Registers are given to a thread in eights.
    registers = LIMITS[sm.number].registers // (blocks * threads_of_either(tactic)) // 8 * 8
    return Usage(
        registers=min(_MOST_REGISTERS, registers),
        shared_bytes=shared_bytes_of_either(tactic, sm),
        stack_bytes=0,
        spill_bytes=0,
    )


def _why_none(candidates: Sequence[EitherCandidate]) -> str:
    """The reason against the tactics that take the most: those of pairs, or the direct ones."""
    general = [c for c in candidates if isinstance(c.tactic, (Direct, PairTactic))]
    reasons = [c.exclusion for c in general if c.exclusion is not None]
    other = [r for r in reasons if r.value != "dtype"]
    return (other or reasons)[0].sentence
