"""What a builder is offered for one GPU, made before it starts: kernels, kit and model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trtplug.kernels.compile import CompiledKernel, Refused, compile_many
from trtplug.kernels.kit import KitKernel, KitSite, make_kit, ptx_digest, write_kit
from trtplug.plugin.choose import plugin_units, without
from trtplug.plugin.model import write_plugin_model
from trtplug.plugin.units import PluginOffer, ReadyUnit
from trtplug.store import as_output_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from trtplug.kernels.catalog import Catalog
    from trtplug.kernels.choose import KernelTarget
    from trtplug.kernels.compile import Outcome
    from trtplug.kernels.family import AnyTactic
    from trtplug.model.source import Source
    from trtplug.plugin.units import PluginCandidate, PluginUnit
    from trtplug.store import Store


COMPILING = "Compiling plugin kernels"

_SHARE = 10
"""A tenth of the bar is for compiling: the rest is left to the builder's own phases."""


def make_offer(
    source: Source,
    planned: PluginOffer,
    candidates: Sequence[PluginCandidate],
    place: KernelTarget,
    folder: Path,
    store: Store,
    jobs: int,
    on_event: Callable[[dict[str, object]], None],
) -> PluginOffer:
    """Compiles the kernels of a plan's sites, and writes kit and model.

    Args:
        source: the model; it is not changed.
        planned: the choices of the plan, without files.
        candidates: sites and pairs of the model.
        place: the GPU that kernels are for.
        folder: a folder to make for the files; it must last as long as the builder runs.
        store: where kernels are kept.
        jobs: kernels compiled at once.
        on_event: called with each step.

    Raises:
        CompilerMissingError: NVRTC is not installed.
        ModelInvalidError: the model with plugin nodes would be larger than protobuf allows.
        OutputError: a file cannot be written.
    """
    units = plugin_units(candidates, planned.sites, place.catalog)
    if not units:
        return planned
    ready = _compile(units, place, store, jobs, on_event)
    offer = replace(planned, sites=without(planned.sites, ready.lost), log=ready.log)
    if not ready.units:
        return offer
    model, kit = folder / "model.onnx", folder / "kit"
    with as_output_error(folder):
        kit.mkdir(parents=True)
        write_kit(make_kit(place.sm.number, (r.site for r in ready.units)), ready.ptx, kit)
        placed = write_plugin_model(source, ready.units, model)
    return replace(offer, placed=placed, model=model, kit=kit)


def _compile(
    units: Sequence[PluginUnit],
    place: KernelTarget,
    store: Store,
    jobs: int,
    on_event: Callable[[dict[str, object]], None],
) -> ReadyKernels:
    steps = sum(len(unit.tactics) for unit in units) * _SHARE
    on_event({"event": "phase", "name": COMPILING, "parent": None, "steps": steps, "ahead": True})
    done = 0

    def step(_: Outcome) -> None:
        nonlocal done
        done += 1
        on_event({"event": "step", "name": COMPILING, "step": done})

    ready = compile_units(units, place, store, jobs, step)
    on_event({"event": "end", "name": COMPILING})
    return ready


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
