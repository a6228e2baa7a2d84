"""The part of TensorRT's API that its editions share: parser, profiles, progress, common options.

Calls are the same in `tensorrt` and `tensorrt_rtx`; which of the two it is, the caller knows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.backends.build_log import BuildLog
    from trtplug.backends.options import BuildOptions
    from trtplug.backends.request import BuildRequest, InputRange

_STEPS_REPORTED = 20
"""Of each phase: enough for a progress bar. Counted, not timed, so that two builds do the same."""


class Network:
    """A parsed model, with the builder that it belongs to. (Dataclasses take long to make.)."""

    def __init__(
        self,
        log: BuildLog,
        builder: Any = None,
        network: Any = None,
        parser: Any = None,
        refusals: list[str] | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        self.log, self.builder, self.network = log, builder, network
        self.parser = parser
        """It owns the weights of the network."""
        self.refusals = refusals or []
        self.error = error
        """An error of our own in their place, as `errors.error_to_plain` has it."""


def parse_model(
    builder: Any, network: Any, parser: Any, log: BuildLog, request: BuildRequest
) -> Network:
    """Parses a model's file, or a repaired copy of it, into an empty network."""
    path = _path_of_one_length(request.model)
    if request.data is None:
        parsed = parser.parse_from_file(path)
    else:
        # The parser looks for external data beside the path.
        parsed = parser.parse(Path(request.data).read_bytes(), path)
    refusals = []
    if not parsed:
        refusals = [_refusal(parser.get_error(i)) for i in range(parser.num_errors)]
        refusals = refusals or log.messages("E") or ["the parser gave no reason"]
    return Network(log, builder, network, parser, refusals)


def _path_of_one_length(model: str) -> str:
    """A path of the file that is equally long wherever the file lies.

    The library keeps copies of it, and where they lie on the heap shows in the engine: PP-OCRv4 det
    had other bytes, in another order, in a folder whose name was 7 characters longer.
    """
    folder, _, name = model.rpartition("/")
    handle = os.open(folder or "/", os.O_RDONLY | os.O_DIRECTORY)
    short = f"/proc/self/fd/{handle}"
    return f"{short}/{name}" if Path(short).is_dir() else model


def _refusal(error: Any) -> str:
    node = f"node {error.node_name()!r} ({error.node_operator()}): " if error.node_name() else ""
    return f"{node}{error.desc().strip()}"


def add_profiles(builder: Any, network: Any, config: Any, request: BuildRequest) -> list[str]:
    """One optimization profile for each set of ranges; what could not be set, in words."""
    problems = []
    for ranges in (request.ranges, *request.more_profiles):
        profile = builder.create_optimization_profile()
        problems += _fill_profile(profile, network, {r.name: r for r in ranges})
        config.add_optimization_profile(profile)
    return list(dict.fromkeys(problems))


def _fill_profile(profile: Any, network: Any, ranges: dict[str, InputRange]) -> list[str]:
    problems = []
    for position in range(network.num_inputs):
        tensor = network.get_input(position)
        chosen = ranges.get(tensor.name)
        if tensor.is_shape_tensor:
            problems.append(f"input {tensor.name!r} holds a shape; its value must be fixed")
        elif chosen is not None and -1 in tuple(tensor.shape):
            low, opt, high = map(tuple, (chosen.min, chosen.opt, chosen.max))
            profile.set_shape(tensor.name, low, opt, high)
    return problems


def set_common_options(trt: Any, config: Any, options: BuildOptions) -> None:
    """What each edition knows."""
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if not options.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options.weight_streaming:
        config.set_flag(trt.BuilderFlag.WEIGHT_STREAMING)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.workspace_bytes is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_bytes)


def make_monitor(trt: Any, log: BuildLog, emit: Callable[..., None]) -> Any:
    """A progress monitor that reports to the parent, and to the log when a phase is over."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.steps: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            self.steps[phase] = steps
            emit(event="phase", name=phase, parent=parent, steps=steps)

        def step_complete(self, phase: str, step: int) -> bool:
            steps = self.steps.get(phase, 1) or 1
            if (step + 1) * _STEPS_REPORTED // steps != step * _STEPS_REPORTED // steps:
                emit(event="step", name=phase, step=step + 1)
            return True

        def phase_finish(self, phase: str) -> None:
            log.phase_finished(phase)
            emit(event="end", name=phase)

    return Monitor()
