"""Kernels of the sites that get the plugin: compiled, and what is left where some are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.kernels import nvrtc
from trtplug.kernels.compile import Kernel, Refused, compile_many
from trtplug.kernels.either import EitherTactic, generate_either
from trtplug.kernels.kit import KitKernel, KitSite, ptx_digest
from trtplug.kernels.source import plugin_headers
from trtplug.plugin.choose import PluginUnit
from trtplug.settings import resource_folder
from trtplug.store import key_of, sha256_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    sm: Sm,
    store: Store | None,
    jobs: int,
    done: Callable[[Outcome], None] = lambda _: None,
) -> ReadyKernels:
    """Compiles what is offered; a kernel that is refused drops out, and the others go on.

    Args:
        units: with the tactics that are offered for each.
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
        for unit in units
        for tactic in unit.tactics
    ]
    outcomes = compile_many([(source, sm) for _, _, source in wanted], store, jobs, done)
    tried: dict[str, list[tuple[EitherTactic, Outcome]]] = {u.candidate.label: [] for u in units}
    for (unit, tactic, _), outcome in zip(wanted, outcomes, strict=True):
        tried[unit.candidate.label].append((tactic, outcome))
    ready = [_ready(unit, tried[unit.candidate.label]) for unit in units]
    return ReadyKernels(
        units=tuple(r for r in ready if isinstance(r, ReadyUnit)),
        lost={
            u.candidate.label: r for u, r in zip(units, ready, strict=True) if isinstance(r, str)
        },
        ptx={ptx_digest(o.ptx): o.ptx for o in outcomes if isinstance(o, Kernel)},
        refused=tuple({o.digest: o for o in outcomes if isinstance(o, Refused)}.values()),
    )


def _ready(unit: PluginUnit, tried: list[tuple[EitherTactic, Outcome]]) -> ReadyUnit | str:
    """The unit with the kernels that compiled, or why it has none."""
    kernels = [(tactic, outcome) for tactic, outcome in tried if isinstance(outcome, Kernel)]
    if not kernels:
        names = ", ".join(tactic.name for tactic, _ in tried)
        return f"no kernel compiled of {names}: kernels.log has the compiler's messages"
    offered = tuple(KitKernel(tactic=t.name, ptx_sha256=ptx_digest(k.ptx)) for t, k in kernels)
    site = KitSite(problem=unit.problem, kernels=offered)
    return ReadyUnit(unit=unit, site=site, tactic=kernels[0][0])


def kernels_digest() -> str:
    """What the kernels come from: digest of the sources and the compiler's version.

    Raises:
        CompilerMissingError: NVRTC is not installed.
    """
    folder = resource_folder("plugins")
    sources = {str(file.relative_to(folder)): sha256_of(file) for file in folder.rglob("*.cuh")}
    return key_of({"sources": sources, "compiler": nvrtc.version()})
