"""The log of one build with TensorRT-RTX, and the layer listing in it.

A logger of ours would cost a tenth of the build, and so would a log in full: it is kept for the
second try of a build that crashed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.build_log import BuildLog
from trtplug.backends.child import run_alone
from trtplug.backends.child_loop import Built, serve
from trtplug.backends.network import (
    Network,
    add_profiles,
    make_monitor,
    parse_model,
    set_common_options,
)

if TYPE_CHECKING:
    from trtplug.backends.child_loop import Emit
    from trtplug.backends.request import BuildRequest


_WHOLE, _PREPARING, _ENGINE = (
    "Building engine",
    "Preparing graph for optimization",
    "Building engine from subgraph",
)
"""Phases, in the words of the progress monitor."""


class RtxLog(BuildLog):
    """A build's log that knows where the layers are in it."""

    def __init__(self, trt: Any, folder: Path, *, verbose: bool) -> None:
        super().__init__(trt, folder, verbose=verbose)
        self._full = trt.Logger.VERBOSE
        self._layers_begin = self._layers_end = 0

    def phase_finished(self, phase: str) -> None:
        """To be called by the progress monitor.

        The layers are the one message between the end of the last subgraph and that of the whole:
        found by its place, since names in it could hold anything.
        """
        if phase == _PREPARING:
            self.logger.min_severity = self._full  # few lines are left, and the layers are one
        elif phase == _ENGINE:
            self._layers_begin = self.size()
        elif phase == _WHOLE:
            self._layers_end = self.size()

    def layers(self) -> bytes:
        """The message that starts with `Layers:`; empty where there was none.

        Raises:
            OSError: the log could not be written.
        """
        found = self.first_message(self._layers_begin, self._layers_end)
        if not found.startswith(b"Layers:\n"):
            self.probe_disk()  # on a full disk this says why there are none
            return b""
        return found


class RtxAdapter:
    """Builds for a named SM; no GPU is needed, and none is used."""

    library = "libtensorrt_rtx"

    def load(self) -> Any:
        """Imports the bindings."""
        import tensorrt_rtx

        return tensorrt_rtx

    def begin(self, request: BuildRequest) -> list[str]:
        """Keeps all threads on one processor, so that the same build has the same bytes."""
        return run_alone(request.cpu)

    def open_log(self, trt: Any, folder: Path, *, verbose: bool) -> RtxLog:
        """Starts the log."""
        return RtxLog(trt, folder, verbose=verbose)

    def parse(self, trt: Any, log: Any, request: BuildRequest) -> Network:
        """Parses the model, or a repaired copy of it, into a network."""
        builder = trt.Builder(log.logger)
        builder.max_threads = 1  # several threads make the order of kernels, and so the bytes, vary
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, log.logger)
        return parse_model(builder, network, parser, log, request)

    def build(
        self, trt: Any, parsed: Network, request: BuildRequest, emit: Emit
    ) -> Built | list[str]:
        """Builds; or says why there is no engine."""
        builder, network = parsed.builder, parsed.network
        config = builder.create_builder_config()
        config.progress_monitor = monitor = make_monitor(trt, parsed.log, emit)
        config.num_compute_capabilities = 1
        config.set_compute_capability(getattr(trt.ComputeCapability, f"SM{request.sm}"), 0)
        set_common_options(trt, config, request.options)
        if problems := add_profiles(builder, network, config, request):
            return problems
        plan = builder.build_serialized_network(network, config)
        del monitor
        return parsed.log.messages("E") if plan is None else Built(memoryview(plan))

    def finish(self, request: BuildRequest, log: Any, emit: Emit) -> dict[str, object]:  # noqa: ARG002
        """Keeps the layer listing: the inspector would need a GPU."""
        (Path(request.folder) / "layers.txt").write_bytes(log.layers())
        return {}


if __name__ == "__main__":
    serve(RtxAdapter())
