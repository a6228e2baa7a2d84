"""Kernels of the sites that get the plugin: compiled, and what is left where some are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.compile import Kernel, Refused, compile_many
from trtplug.kernels.either import EitherTactic, generate_either
from trtplug.kernels.kit import KitKernel, KitSite, ptx_digest
from trtplug.kernels.source import plugin_headers
from trtplug.plugin.choose import Choices, PluginUnit, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.kernels.compile import Outcome
    from trtplug.store import Store
    from trtplug.target import Sm


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyUnit:
    """A site or pair whose kernels are compiled."""

    unit: PluginUnit
    site: KitSite
    """What the builder may choose from."""
    tactic: EitherTactic
    """One of them: all read the packing that it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyKernels:
    """What came of compiling."""

    choices: Choices
    """With those native after all that no kernel was left for."""
    units: tuple[ReadyUnit, ...]
    ptx: dict[str, str]
    """Digest -> PTX of all kernels in `units`."""
    refused: tuple[Refused, ...]
    """Each once."""

    @property
    def log(self) -> str:
        """The compiler's words about all that it refused; empty where it took everything."""
        return "\n".join(
            f"== {r.name} for {r.sm}, source {r.digest}: {r.status}\n{r.log.rstrip()}\n"
            for r in self.refused
        )


def compile_choices(
    choices: Choices,
    sm: Sm,
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> ReadyKernels:
    """Compiles what is offered; a kernel that is refused drops out, and the others go on.

    Args:
        choices: what is offered for which site.
        sm: of the GPU.
        store: where kernels are kept; None compiles all of them.
        jobs: kernels at once.
        done: called for each.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    headers = plugin_headers()
    wanted = [
        (unit, tactic, generate_either(tactic, unit.problem, sm, headers))
        for unit in choices.units
        for tactic in unit.offer.tactics
    ]
    outcomes = compile_many([(source, sm) for _, _, source in wanted], store, jobs, done)
    made: dict[str, list[tuple[EitherTactic, Outcome]]] = {}
    for (unit, tactic, _), outcome in zip(wanted, outcomes, strict=True):
        made.setdefault(unit.asked.label, []).append((tactic, outcome))
    ready = tuple(
        _ready(unit, kernels)
        for unit in choices.units
        if (kernels := list(_kernels(made[unit.asked.label])))
    )
    left = {r.unit.asked.label for r in ready}
    gone = {label: _why_gone(tried) for label, tried in made.items() if label not in left}
    return ReadyKernels(
        choices=without(choices, gone),
        units=ready,
        ptx={ptx_digest(o.ptx): o.ptx for o in outcomes if isinstance(o, Kernel)},
        refused=tuple({o.digest: o for o in outcomes if isinstance(o, Refused)}.values()),
    )


def kernels_wanted(choices: Choices) -> int:
    """How many kernels `compile_choices` asks for."""
    return sum(len(unit.offer.tactics) for unit in choices.units)


def _kernels(tried: list[tuple[EitherTactic, Outcome]]) -> Iterator[tuple[EitherTactic, Kernel]]:
    return ((tactic, outcome) for tactic, outcome in tried if isinstance(outcome, Kernel))


def _ready(unit: PluginUnit, kernels: list[tuple[EitherTactic, Kernel]]) -> ReadyUnit:
    offered = tuple(KitKernel(tactic=t.name, ptx_sha256=ptx_digest(k.ptx)) for t, k in kernels)
    site = KitSite(problem=unit.problem, kernels=offered)
    return ReadyUnit(unit=unit, site=site, tactic=kernels[0][0])


def _why_gone(tried: list[tuple[EitherTactic, Outcome]]) -> str:
    names = ", ".join(tactic.name for tactic, _ in tried)
    return f"no kernel compiled of {names}: kernels.log has the compiler's words"
