"""The tactics that are offered for one problem: all legal ones that read one packing of weights.

An engine holds a site's weights once, so all kernels that TensorRT may choose from must read them
as they lie. The tactic that is predicted to be the fastest fixes the packing. It is predicted
before anything is compiled, with the registers that the kernel's launch bounds leave it. Where the
GPU's figures are not known, the first legal tactic of a stated order fixes it. Nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.catalog import CATALOG, Catalog
from trtplug.kernels.family import DEFAULT_SHARED_BYTES, AnyTactic
from trtplug.kernels.predict import predict
from trtplug.kernels.sm import MAX_REGISTERS_PER_THREAD, SMS, Usage
from trtplug.profile import GpuProfile
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtplug.kernels.catalog import ListedTactic
    from trtplug.kernels.problem import AnyProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTarget:
    """The GPU that kernels are for."""

    sm: Sm
    profile: GpuProfile | None
    """Figures of the GPU; None where there are none."""
    shared_bytes: int = DEFAULT_SHARED_BYTES
    """What a block may take of shared memory."""
    catalog: Catalog = CATALOG
    """Tactics to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Tactics that read one packing."""

    tactics: tuple[AnyTactic, ...]
    """The one that fixed the packing first, the others in the same order."""
    packing: str
    why: str
    """Why this packing, in words."""


def choose_offer(
    problem: AnyProblem,
    target: KernelTarget,
    allowed: Callable[[str], bool] = lambda _: True,
    measured: str | None = None,
) -> Offer | str:
    """What is offered for a problem, or why nothing can be.

    Args:
        problem: what is to be computed.
        target: the GPU.
        allowed: whether a tactic of that name may be offered.
        measured: a tactic whose packing is to be taken where it is legal, before any prediction.
    """
    listed = target.catalog.list(problem, target.sm, target.shared_bytes)
    legal = [each.tactic for each in listed if each.exclusion is None]
    if not legal:
        return f"no tactic is legal on {target.sm}: {_why_none(listed)}"
    usable = [t for t in legal if allowed(t.name)]
    if not usable:
        return f"--plugin-tactics excludes every legal tactic: {', '.join(t.name for t in legal)}"
    ordered, why = _ordered(usable, problem, target)
    first = next((t for t in ordered if t.name == measured), None)
    if first is not None:
        why = f"{measured} is the tactic that was measured"
    packing = (first or ordered[0]).packing(problem)
    same = [t for t in ordered if t.packing(problem) == packing]
    same.sort(key=lambda t: t is not first)
    return Offer(tactics=tuple(same), packing=packing, why=why)


def _ordered(
    tactics: Sequence[AnyTactic], problem: AnyProblem, target: KernelTarget
) -> tuple[list[AnyTactic], str]:
    """The tactics, the one to fix the packing first, and why it is that one."""
    gpu, known = target.profile, {}
    for tactic in tactics if gpu else ():
        usage = intended_usage(tactic, problem, target.sm)
        if gpu and (found := predict(tactic, problem, gpu, usage, problem.x.opt)):
            known[tactic.name] = found.predicted_us
    if len(known) < len(tactics) or gpu is None:
        ordered = sorted(tactics, key=lambda t: (t.rank, t.number))
        return ordered, f"{ordered[0].name} is first in order: no figures of the GPU to predict by"
    ordered = sorted(tactics, key=lambda t: (known[t.name], t.number))
    first = ordered[0].name
    why = f"{first} is predicted fastest on {gpu.name}: {known[first]:.1f} us, not measured"
    return ordered, why


def intended_usage(tactic: AnyTactic, problem: AnyProblem, sm: Sm) -> Usage:
    """Resources that a kernel is to have when it is compiled: by its launch bounds."""
    blocks = tactic.blocks_to_try(problem, sm)[0]
    # Registers are given to a thread in eights.
    registers = SMS[sm.number].registers // (blocks * tactic.threads) // 8 * 8
    return Usage(
        registers=min(MAX_REGISTERS_PER_THREAD, registers),
        shared_bytes=tactic.shared_bytes(sm),
        stack_bytes=0,
        spill_bytes=0,
    )


def _why_none(listed: Sequence[ListedTactic]) -> str:
    """The reason against the tactics that take the most."""
    most = max((each.tactic.rank for each in listed), default=0)
    general = [each for each in listed if each.tactic.rank == most]
    reasons = [each.exclusion for each in general if each.exclusion is not None]
    other = [r for r in reasons if r.value != "dtype"]
    return (other or reasons)[0].sentence
