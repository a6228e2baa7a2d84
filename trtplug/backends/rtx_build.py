"""The child process that builds with TensorRT-RTX; the only module that imports it.

It reads one request line from stdin, writes events as JSON lines to its stdout, and leaves
`engine`, `layers.txt` and `build.log` in the request's folder. Whatever the native library does to
the process, the parent only sees a child that ended.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.backend import BuildOptions, BuildRequest, request_from_json
from trtplug.backends.child import (
    CPU_VARIABLE,
    aslr_is_off,
    die_with_parent,
    run_alone,
    take_stdout,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS_TOLD = 20
"""Of each phase: enough for a progress bar. Counted, not timed, so that two builds do the same."""

_KEPT = 50
"""Errors and warnings kept in the outcome; the log has all."""


def main() -> None:
    """Entry point of the child."""
    die_with_parent()
    run_alone(int(os.environ.get(CPU_VARIABLE, "0")))
    channel = take_stdout()

    def emit(**event: object) -> None:
        os.write(channel, (json.dumps(event) + "\n").encode())

    import tensorrt_rtx as trt

    emit(event="ready")
    line = sys.stdin.readline()
    if line:
        emit(**_answer(trt, request_from_json(line), emit))
    # The library's teardown takes time and has nothing left to save.
    os._exit(0)


def _answer(trt: Any, request: BuildRequest, emit: Callable[..., None]) -> dict[str, object]:
    """Builds, and keeps the result; a folder that cannot be written is no failure of the build."""
    try:
        log = _make_logger(trt, Path(request.folder))
    except OSError as error:
        return _unwritable(error)
    end = _build(trt, log, request, emit)
    if not isinstance(end, memoryview):
        return {**end, "warnings": log.warnings}
    try:
        if log.lost is not None:
            raise log.lost
        return _keep(trt, request, end, log)
    except OSError as error:
        return _unwritable(error)


def _unwritable(error: OSError) -> dict[str, object]:
    return {"event": "unwritable", "reasons": [error.strerror or str(error)]}


def _build(
    trt: Any, log: Any, request: BuildRequest, emit: Callable[..., None]
) -> memoryview | dict[str, object]:
    """The builder's buffer, or the event that says why there is none."""
    builder = trt.Builder(log)
    builder.max_threads = 1  # several threads make the order of kernels, and so the bytes, vary
    network = builder.create_network(0)
    refusals = _parse(trt, log, network, request)
    if refusals:
        return {"event": "refused", "reasons": refusals}
    config = builder.create_builder_config()
    config.progress_monitor = monitor = _make_monitor(trt, emit)
    problems = _configure(trt, builder, network, config, request)
    if problems:
        return {"event": "failed", "reasons": problems}
    plan = builder.build_serialized_network(network, config)
    del monitor
    if plan is None:
        return {"event": "failed", "reasons": log.errors}
    return memoryview(plan)


def _keep(trt: Any, request: BuildRequest, plan: memoryview, log: Any) -> dict[str, object]:
    """Writes the builder's buffer as it is, and says what it was."""
    with (Path(request.folder) / "engine").open("xb") as file:
        file.write(plan)
    return {
        "event": "built",
        "warnings": log.warnings,
        "builder_version": trt.__version__,
        "library": _loaded_library(),
        "engine_sha256": hashlib.sha256(plan).hexdigest(),
        "aslr_off": aslr_is_off(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _parse(trt: Any, log: Any, network: Any, request: BuildRequest) -> list[str]:
    """Parses the model; the parser's refusals, empty where there are none."""
    parser = trt.OnnxParser(network, log)
    if request.data is None:
        parsed = parser.parse_from_file(request.model)
    else:
        # The path tells the parser where external data lies.
        parsed = parser.parse(Path(request.data).read_bytes(), request.model)
    if parsed:
        return []
    refusals = [_refusal(parser.get_error(i)) for i in range(parser.num_errors)]
    return refusals or log.errors or ["the parser gave no reason"]


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
            profile.set_shape(tensor.name, chosen.min, chosen.opt, chosen.max)
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


def _make_logger(trt: Any, folder: Path) -> Any:
    """A logger that writes each message at once, so that a crash loses none."""
    file = os.open(folder / "build.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    marks = {
        trt.ILogger.INTERNAL_ERROR: b"[F] ",
        trt.ILogger.ERROR: b"[E] ",
        trt.ILogger.WARNING: b"[W] ",
        trt.ILogger.INFO: b"[I] ",
        trt.ILogger.VERBOSE: b"[V] ",
    }

    class Logger(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.errors: list[str] = []
            self.warnings: list[str] = []
            self.lost: OSError | None = None

        def log(self, severity: Any, message: str) -> None:
            mark = marks[severity]
            # What is raised in here ends the process. On a full disk a lost line of the log is
            # borne; lost layers are told once the build is done.
            with contextlib.suppress(OSError):
                os.write(file, mark + message.encode("utf-8", "replace") + b"\n")
            if mark == b"[V] ":
                if message.startswith("Layers:\n"):
                    self.keep_layers(message)
            elif mark in (b"[E] ", b"[F] ") and len(self.errors) < _KEPT:
                self.errors.append(message.strip())
            elif mark == b"[W] " and len(self.warnings) < _KEPT:
                self.warnings.append(message.strip())

        def keep_layers(self, message: str) -> None:
            try:
                (folder / "layers.txt").write_text(message, encoding="utf-8")
            except OSError as error:
                self.lost = error

    return Logger()


def _make_monitor(trt: Any, emit: Callable[..., None]) -> Any:
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
