"""The child process that builds with enterprise TensorRT, on the local GPU.

Beside `engine` and `build.log` it leaves `timing.cache` and, from the trial run, `inspector.json`.
The log is always in full: candidate tables are nowhere else.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.build_log import BuildLog
from trtplug.backends.child_loop import Built, serve
from trtplug.backends.network import (
    Network,
    add_profiles,
    make_monitor,
    parse_model,
    set_common_options,
)
from trtplug.backends.options import trt_options_from
from trtplug.backends.trt.config import (
    creation_flags,
    load_plugins,
    set_parser_flags,
    set_strict_cache,
    set_trt_options,
)
from trtplug.backends.trt.trial import TrialRequest, run_trial

if TYPE_CHECKING:
    from trtplug.backends.child_loop import Emit
    from trtplug.backends.request import BuildRequest


CACHE_FILE = "timing.cache"


class TrtAdapter:
    """Builds for the local GPU, by timing kernels on it."""

    library = "libnvinfer.so"

    def load(self) -> Any:
        """Imports the bindings."""
        import tensorrt

        return tensorrt

    def begin(self, request: BuildRequest) -> list[str]:  # noqa: ARG002
        """Nothing: threads of the builder may run anywhere, since bytes differ anyway."""
        return []

    def open_log(self, trt: Any, folder: Path, *, verbose: bool) -> BuildLog:  # noqa: ARG002
        """Starts the log."""
        return BuildLog(trt, folder, verbose=True)

    def parse(self, trt: Any, log: BuildLog, request: BuildRequest) -> Network:
        """Parses the model, or a repaired copy of it, into a network."""
        options = trt_options_from(request.options.trt)
        logger = log.logger
        trt.init_libnvinfer_plugins(logger, "")
        builder, error = _make_builder(trt, logger)
        if error is not None:
            return Network(log, error=error)
        problems = load_plugins(builder.get_plugin_registry(), options)
        if request.plugin_kit is not None and not problems:
            error = self._offer(trt, builder, logger, request)
        network = builder.create_network(
            creation_flags(trt, ahead_of_time=request.plugin_kit is not None)
        )
        parser = trt.OnnxParser(network, logger)
        if problems or error:
            return Network(log, builder, network, parser, problems, error)
        set_parser_flags(trt, parser, options)
        return parse_model(builder, network, parser, log, request)

    def _offer(
        self, trt: Any, builder: Any, logger: Any, request: BuildRequest
    ) -> dict[str, Any] | None:
        """Registers the plugins of a kit; or says why that cannot be."""
        from trtplug.backends.trt.plugins import offer_plugins
        from trtplug.errors import TrtplugError, error_to_plain

        registries = (builder.get_plugin_registry(), trt.get_plugin_registry())
        try:
            offer_plugins(trt, logger, registries, str(request.plugin_kit), int(request.sm))
        except TrtplugError as caught:
            return error_to_plain(caught)
        return None

    def build(
        self, trt: Any, parsed: Network, request: BuildRequest, emit: Emit
    ) -> Built | list[str]:
        """Builds; or says why there is no engine."""
        builder, network = parsed.builder, parsed.network
        config = builder.create_builder_config()
        config.progress_monitor = monitor = make_monitor(trt, parsed.log, emit)
        set_common_options(trt, config, request.options)
        problems = set_trt_options(trt, config, trt_options_from(request.options.trt))
        if request.strict_cache:
            problems += set_strict_cache(trt, config)
        problems += add_profiles(builder, network, config, request)
        # The cache must outlive the build.
        cache, refusal = _attach_cache(config, request.timing_cache)
        if problems or refusal:
            return problems + refusal
        plan = builder.build_serialized_network(network, config)
        del monitor
        if plan is None:
            return parsed.log.messages("E")
        (Path(request.folder) / CACHE_FILE).write_bytes(memoryview(cache.serialize()))
        return Built(memoryview(plan))

    def finish(self, request: BuildRequest, log: BuildLog, emit: Emit) -> dict[str, object]:  # noqa: ARG002
        """Loads the engine in a process of its own, inspects it, and runs it once.

        One that was built to record tactics is not run: the tactic that crashes may be the one that
        is to be replaced.
        """
        options = request.options.trt
        if not options.trial_run:
            return {}
        emit(event="phase", name="Running the engine once", parent=None, steps=1)
        result = run_trial(
            TrialRequest(
                folder=request.folder,
                plugin_libraries=tuple(p.path for p in options.plugin_libraries),
                host_code=options.version_compatible,
                weightless=options.strip or request.record,
            )
        )
        emit(event="end", name="Running the engine once")
        if result.problem and not request.record:
            return {"reasons": [result.problem, *result.last_lines]}
        return {"trial": result.sentence}


def _make_builder(trt: Any, logger: Any) -> tuple[Any, dict[str, Any] | None]:
    """A builder; or the error where the GPU is full or its driver fails (seen as a TypeError)."""
    from trtplug.errors import BackendMissingError, error_to_plain

    try:
        return trt.Builder(logger), None
    except TypeError as caught:
        error = BackendMissingError(
            backend="trt",
            problem=f"TensorRT gives no builder ({caught}): the GPU is full, or its driver fails",
            advice="`nvidia-smi` shows what uses the GPU's memory, and whether it answers",
        )
        return None, error_to_plain(error)


def _attach_cache(config: Any, path: str | None) -> tuple[Any, list[str]]:
    """The cache of this build, and why it was refused; `ignore_mismatch` is never true."""
    data = Path(path).read_bytes() if path is not None else b""
    cache = config.create_timing_cache(data)
    if cache is None or not config.set_timing_cache(cache, False):
        return cache, ["the timing cache does not fit this GPU and this TensorRT"]
    return cache, []


if __name__ == "__main__":
    serve(TrtAdapter())
