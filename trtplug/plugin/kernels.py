"""Kernels of the sites that get the plugin: compiled, and what is left where some are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels import nvrtc
from trtplug.kernels.compile import CompiledKernel, Refused, compile_many
from trtplug.kernels.family import AnyTactic
from trtplug.kernels.kit import KitKernel, KitSite, ptx_digest
from trtplug.plugin.choose import PluginUnit
from trtplug.settings import resource_folder
from trtplug.store import key_of, sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    """The kernels that compiled, and the units that have any."""

    units: tuple[ReadyUnit, ...]
    lost: dict[str, str]
    """Label of each unit without a kernel -> why."""
    ptx: dict[str, str]
    """Digest -> PTX of all kernels in `units`."""
    refused: tuple[Refused, ...]
    """Each once."""

    @property
    def log(self) -> str:
        """The compiler's messages about all that it refused; empty where it took everything."""
        return "\n".join(
            f"== {r.name} for {r.sm}, source {r.digest}: {r.status}\n{r.log.rstrip()}\n"
            for r in self.refused
        )


def compile_units(
    units: Sequence[PluginUnit],
    target: KernelTarget,
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> ReadyKernels:
    """Compiles what is offered; a kernel that is refused drops out, and the others go on.

    Args:
        units: with the tactics that are offered for each.
        target: the SM, and the catalog that the tactics are of.
        store: where kernels are kept; None compiles all of them.
        jobs: kernels at once.
        done: called for each.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    headers = target.catalog.headers()
    wanted = [
        (unit, tactic, tactic.generate(unit.problem, target.sm, headers))
        for unit in units
        for tactic in unit.tactics
    ]
    outcomes = compile_many([(source, target.sm) for _, _, source in wanted], store, jobs, done)
    tried: dict[str, list[tuple[AnyTactic, Outcome]]] = {u.candidate.label: [] for u in units}
    for (unit, tactic, _), outcome in zip(wanted, outcomes, strict=True):
        tried[unit.candidate.label].append((tactic, outcome))
    ready = [_ready(unit, tried[unit.candidate.label], target.catalog) for unit in units]
    return ReadyKernels(
        units=tuple(r for r in ready if isinstance(r, ReadyUnit)),
        lost={
            u.candidate.label: r for u, r in zip(units, ready, strict=True) if isinstance(r, str)
        },
        ptx={ptx_digest(o.ptx): o.ptx for o in outcomes if isinstance(o, CompiledKernel)},
        refused=tuple({o.digest: o for o in outcomes if isinstance(o, Refused)}.values()),
    )


def _ready(
    unit: PluginUnit, tried: list[tuple[AnyTactic, Outcome]], catalog: Catalog
) -> ReadyUnit | str:
    """The unit with the kernels that compiled, or why it has none."""
    kernels = [
        (tactic, outcome) for tactic, outcome in tried if isinstance(outcome, CompiledKernel)
    ]
    if not kernels:
        names = ", ".join(tactic.name for tactic, _ in tried)
        return f"no kernel compiled of {names}: kernels.log has the compiler's messages"
    offered = tuple(KitKernel(tactic=t.name, ptx_sha256=ptx_digest(k.ptx)) for t, k in kernels)
    site = KitSite(problem=unit.problem, kernels=offered, catalog=catalog)
    return ReadyUnit(unit=unit, site=site, tactic=kernels[0][0])


def kernels_digest() -> str:
    """What the kernels come from: digest of the sources and the compiler's version.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    folder = resource_folder("plugins")
    sources = {str(file.relative_to(folder)): sha256_of(file) for file in folder.rglob("*.cuh")}
    return key_of({"sources": sources, "compiler": nvrtc.version()})
