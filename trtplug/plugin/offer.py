"""The whole of what a builder is offered for one GPU, made before it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.kernels.kit import make_kit, write_kit
from trtplug.plugin.choose import Choices, choices_of
from trtplug.plugin.kernels import compile_choices, kernels_wanted
from trtplug.plugin.model import PlacedUnit, write_plugin_model
from trtplug.plugin.options import PluginMode
from trtplug.store import as_output_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.kernels.compile import Outcome
    from trtplug.model.source import Source
    from trtplug.plugin.choose import Ask
    from trtplug.plugin.kernels import ReadyKernels
    from trtplug.store import Store


COMPILING = "Compiling plugin kernels"

_SHARE = 10
"""A tenth of the bar is for compiling: the rest is left to the builder's own phases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginOffer:
    """The choices for one GPU, and the files that go with them."""

    mode: PluginMode
    choices: Choices
    placed: tuple[PlacedUnit, ...] = ()
    """The plugin nodes of the model that is built."""
    model: Path | None = None
    """The model with them, to be read in place of the source's; None where there are none."""
    kit: Path | None = None
    """Folder of the kit."""
    log: str = ""
    """What the compiler refused, in its words."""

    @property
    def unit_of(self) -> dict[str, PlacedUnit]:
        """Label of a convolution -> the unit that it is in."""
        return {conv: unit for unit in self.placed for conv in unit.ready.unit.asked.convs}


def choices_only(source: Source, ask: Ask) -> PluginOffer:
    """The choices where no plugin can be among them: nothing is compiled or written.

    Raises:
        UsageError: a glob that matches nothing.
    """
    return PluginOffer(mode=ask.wish.mode, choices=choices_of(source, ask))


def make_offer(
    source: Source,
    ask: Ask,
    folder: Path,
    store: Store,
    jobs: int,
    on_event: Callable[[dict[str, object]], None],
) -> PluginOffer:
    """Chooses, compiles, and writes kit and model.

    Args:
        source: the model; it is not changed.
        ask: what is wished, where, and what is known.
        folder: a folder to make for the files; it must last as long as the builder runs.
        store: where kernels are kept.
        jobs: kernels compiled at once.
        on_event: hears of the progress.

    Raises:
        UsageError: a glob that matches nothing.
        CompilerMissingError: NVRTC is not installed.
        ModelInvalidError: the model with plugin nodes would be larger than protobuf allows.
        OutputError: a file cannot be written.
    """
    choices = choices_of(source, ask)
    if not choices.units:
        return PluginOffer(mode=ask.wish.mode, choices=choices)
    ready = _compile(choices, ask, store, jobs, on_event)
    if not ready.units:
        return PluginOffer(mode=ask.wish.mode, choices=ready.choices, log=ready.log)
    model, kit = folder / "model.onnx", folder / "kit"
    with as_output_error(folder):
        kit.mkdir(parents=True)
        write_kit(make_kit(ask.place.sm.number, (r.site for r in ready.units)), ready.ptx, kit)
        placed = write_plugin_model(source, ready.units, model)
    return PluginOffer(
        mode=ask.wish.mode,
        choices=ready.choices,
        placed=placed,
        model=model,
        kit=kit,
        log=ready.log,
    )


def _compile(
    choices: Choices,
    ask: Ask,
    store: Store,
    jobs: int,
    on_event: Callable[[dict[str, object]], None],
) -> ReadyKernels:
    steps = kernels_wanted(choices) * _SHARE
    on_event({"event": "phase", "name": COMPILING, "parent": None, "steps": steps, "ahead": True})
    done = 0

    def step(_: Outcome) -> None:
        nonlocal done
        done += 1
        on_event({"event": "step", "name": COMPILING, "step": done})

    ready = compile_choices(choices, ask.place, store, jobs, step)
    on_event({"event": "end", "name": COMPILING})
    return ready
