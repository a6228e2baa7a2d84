"""The child process that builds with TensorRT-RTX; the only module that imports it.

It reads a request line from stdin, writes events as JSON lines to its stdout, and leaves `engine`,
`layers.txt` and `build.log` in the request's folder. Whatever the native library does to the
process, the parent only sees a child that ended.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.child import (
    aslr_is_off,
    die_with_parent,
    read_request,
    run_alone,
    take_stdout,
)
from trtplug.backends.rtx_log import BuildLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.backends.backend import BuildOptions, BuildRequest

_STEPS_TOLD = 20
"""Of each phase: enough for a progress bar. Counted, not timed, so that two builds do the same."""


def main() -> None:
    """Entry point of the child."""
    gc.disable()
    die_with_parent()
    channel = take_stdout()

    def emit(**event: object) -> None:
        os.write(channel, (json.dumps(event) + "\n").encode())

    import tensorrt_rtx as trt

    emit(event="ready")
    if request := read_request():
        run_alone(request.cpu)
        emit(**_answer(trt, request, emit))
    # The library's teardown takes time and has nothing left to save.
    os._exit(0)


class _Network:
    """A parsed model, with the builder that it belongs to."""

    def __init__(self, log: BuildLog, builder: Any, network: Any, parser: Any) -> None:
        self.log = log
        self.builder = builder
        self.network = network
        self.parser = parser
        """It owns the weights of the network."""
        self.refusals: list[str] = []


def _answer(trt: Any, request: BuildRequest, emit: Callable[..., None]) -> dict[str, object]:
    """Builds, and keeps the result; a folder that cannot be written is no failure of the build."""
    try:
        log = BuildLog(trt, Path(request.folder), verbose=request.verbose)
        end = _build(trt, _open(trt, log, request.model, request.data), request, emit)
        if isinstance(end, memoryview):
            return _keep(trt, request, end, log)
        return {**end, "warnings": log.messages("W")}
    except OSError as error:
        return {"event": "unwritable", "reasons": [error.strerror or str(error)]}


def _build(
    trt: Any, parsed: _Network, request: BuildRequest, emit: Callable[..., None]
) -> memoryview | dict[str, object]:
    """The builder's buffer, or the event that says why there is none."""
    if parsed.refusals:
        return {"event": "refused", "reasons": parsed.refusals}
    config = parsed.builder.create_builder_config()
    config.progress_monitor = monitor = _make_monitor(trt, parsed.log, emit)
    problems = _configure(trt, parsed.builder, parsed.network, config, request)
    if problems:
        return {"event": "failed", "reasons": problems}
    plan = parsed.builder.build_serialized_network(parsed.network, config)
    del monitor
    if plan is None:
        return {"event": "failed", "reasons": parsed.log.messages("E")}
    return memoryview(plan)


def _keep(trt: Any, request: BuildRequest, plan: memoryview, log: BuildLog) -> dict[str, object]:
    """Writes the builder's buffer as it is, and says what it was."""
    folder = Path(request.folder)
    with (folder / "engine").open("xb") as file:
        file.write(plan)
    (folder / "layers.txt").write_bytes(log.layers())
    return {
        "event": "built",
        "warnings": log.messages("W"),
        "builder_version": trt.__version__,
        "library": _loaded_library(),
        "engine_sha256": hashlib.sha256(plan).hexdigest(),
        "aslr_off": aslr_is_off(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _open(trt: Any, log: BuildLog, model: str, data: str | None) -> _Network:
    """Parses the model, or a mended copy of it, into a network of a builder of its own."""
    builder = trt.Builder(log.logger)
    builder.max_threads = 1  # several threads make the order of kernels, and so the bytes, vary
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log.logger)
    path = _path_of_one_length(model)
    if data is None:
        parsed = parser.parse_from_file(path)
    else:
        # The path tells the parser where external data lies.
        parsed = parser.parse(Path(data).read_bytes(), path)
    found = _Network(log, builder, network, parser)
    if not parsed:
        found.refusals += (_refusal(parser.get_error(i)) for i in range(parser.num_errors))
        found.refusals = found.refusals or log.messages("E") or ["the parser gave no reason"]
    return found


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


def _configure(
    trt: Any, builder: Any, network: Any, config: Any, request: BuildRequest
) -> list[str]:
    """Sets SM, shapes and options; what could not be set, in words."""
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.num_compute_capabilities = 1
    config.set_compute_capability(getattr(trt.ComputeCapability, f"SM{request.sm}"), 0)
    _set_options(trt, config, request.options)
    ranges = {r.name: r for r in request.ranges}
    profile = builder.create_optimization_profile()
    problems = []
    for position in range(network.num_inputs):
        tensor = network.get_input(position)
        chosen = ranges.get(tensor.name)
        if tensor.is_shape_tensor:
            problems.append(f"input {tensor.name!r} holds a shape; its value must be fixed")
        elif chosen is not None and -1 in tuple(tensor.shape):
            profile.set_shape(tensor.name, *map(tuple, (chosen.min, chosen.opt, chosen.max)))
    config.add_optimization_profile(profile)
    return problems


def _set_options(trt: Any, config: Any, options: BuildOptions) -> None:
    if not options.tf32:
        config.clear_flag(trt.BuilderFlag.TF32)
    if options.weight_streaming:
        config.set_flag(trt.BuilderFlag.WEIGHT_STREAMING)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.workspace_bytes is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_bytes)


def _make_monitor(trt: Any, log: BuildLog, emit: Callable[..., None]) -> Any:
    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.steps: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            self.steps[phase] = steps
            emit(event="phase", name=phase, parent=parent, steps=steps)

        def step_complete(self, phase: str, step: int) -> bool:
            steps = self.steps.get(phase, 1)
            if (step + 1) * _STEPS_TOLD // steps != step * _STEPS_TOLD // steps:
                emit(event="step", name=phase, step=step + 1)
            return True

        def phase_finish(self, phase: str) -> None:
            log.phase_finished(phase)
            emit(event="end", name=phase)

    return Monitor()


def _loaded_library() -> str:
    """File name of the builder's library in this process; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line.rpartition("/")[2] for line in lines if "libtensorrt_rtx" in line)
    return next(found, "")


if __name__ == "__main__":
    main()
