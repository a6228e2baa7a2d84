"""Kernels of the sites that get the plugin: compiled, and what is left where some are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels.compile import CompiledKernel, Refused, compile_many
from trtplug.kernels.family import AnyTactic
from trtplug.kernels.kit import KitKernel, KitSite, ptx_digest
from trtplug.plugin.choose import Choices, PluginUnit, without

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.kernels.catalog import Catalog
    from trtplug.kernels.choose import KernelTarget
    from trtplug.kernels.compile import Outcome
    from trtplug.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyUnit:
    """A site or pair whose kernels are compiled."""

    unit: PluginUnit
    site: KitSite
    """What the builder may choose from."""
    tactic: AnyTactic
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
    target: KernelTarget,
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> ReadyKernels:
    """Compiles what is offered; a kernel that is refused drops out, and the others go on.

    Args:
        choices: what is offered for which site.
        target: the GPU.
        store: where kernels are kept; None compiles all of them.
        jobs: kernels at once.
        done: called for each.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    headers = target.catalog.headers()
    wanted = [
        (unit, tactic, tactic.generate(unit.problem, target.sm, headers))
        for unit in choices.units
        for tactic in unit.offer.tactics
    ]
    outcomes = compile_many([(source, target.sm) for _, _, source in wanted], store, jobs, done)
    made: dict[str, list[tuple[AnyTactic, Outcome]]] = {}
    for (unit, tactic, _), outcome in zip(wanted, outcomes, strict=True):
        made.setdefault(unit.asked.label, []).append((tactic, outcome))
    ready = tuple(
        _ready(unit, kernels, target.catalog)
        for unit in choices.units
        if (kernels := list(_kernels(made[unit.asked.label])))
    )
    left = {r.unit.asked.label for r in ready}
    gone = {label: _why_gone(tried) for label, tried in made.items() if label not in left}
    return ReadyKernels(
        choices=without(choices, gone),
        units=ready,
        ptx={ptx_digest(o.ptx): o.ptx for o in outcomes if isinstance(o, CompiledKernel)},
        refused=tuple({o.digest: o for o in outcomes if isinstance(o, Refused)}.values()),
    )


def kernels_wanted(choices: Choices) -> int:
    """How many kernels `compile_choices` asks for."""
    return sum(len(unit.offer.tactics) for unit in choices.units)


def _kernels(tried: list[tuple[AnyTactic, Outcome]]) -> Iterator[tuple[AnyTactic, CompiledKernel]]:
    return ((tactic, outcome) for tactic, outcome in tried if isinstance(outcome, CompiledKernel))


def _ready(
    unit: PluginUnit, kernels: list[tuple[AnyTactic, CompiledKernel]], catalog: Catalog
) -> ReadyUnit:
    offered = tuple(KitKernel(tactic=t.name, ptx_sha256=ptx_digest(k.ptx)) for t, k in kernels)
    site = KitSite(problem=unit.problem, kernels=offered, catalog=catalog)
    return ReadyUnit(unit=unit, site=site, tactic=kernels[0][0])


def _why_gone(tried: list[tuple[AnyTactic, Outcome]]) -> str:
    names = ", ".join(tactic.name for tactic, _ in tried)
    return f"no kernel compiled of {names}: kernels.log has the compiler's words"
