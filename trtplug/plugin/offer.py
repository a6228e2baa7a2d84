"""The whole of what a builder is offered for one GPU, made before it starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.kernels.kit import make_kit, write_kit
from trtplug.plan import PlannedSite
from trtplug.plugin.choose import plugin_units, without
from trtplug.plugin.kernels import compile_units
from trtplug.plugin.model import PlacedUnit, write_plugin_model
from trtplug.plugin.options import PluginMode
from trtplug.store import as_output_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trtplug.kernels.choose import KernelTarget
    from trtplug.kernels.compile import Outcome
    from trtplug.model.source import Source
    from trtplug.plugin.choose import PluginCandidate, PluginUnit
    from trtplug.plugin.kernels import ReadyKernels
    from trtplug.store import Store


COMPILING = "Compiling plugin kernels"

_SHARE = 10
"""A tenth of the bar is for compiling: the rest is left to the builder's own phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOffer:
    """The choices for one GPU, and the files that go with them."""

    mode: PluginMode
    sites: tuple[PlannedSite, ...]
    """As planned; native where no kernel compiled."""
    placed: tuple[PlacedUnit, ...] = ()
    """The plugin nodes of the model that is built."""
    model: Path | None = None
    """The model with them, to be read in place of the source's; None where there are none."""
    kit: Path | None = None
    """Folder of the kit."""
    log: str = ""
    """The compiler's messages about kernels that it refused."""

    @property
    def unit_of(self) -> dict[str, PlacedUnit]:
        """Label of a convolution -> the unit that it is in."""
        return {conv: unit for unit in self.placed for conv in unit.ready.unit.candidate.convs}


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
