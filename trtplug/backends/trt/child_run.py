"""The child process that loads a finished engine, inspects it, and runs each profile once.

Inputs are random (floating point: standard normal; booleans: fair) or, where a number may be an
index, zero. A crash ends this process alone.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtplug.backends.build_log import BuildLog
from trtplug.backends.child import die_with_parent, take_stdout
from trtplug.backends.cuda_layer.find import open_layer
from trtplug.backends.trt.trial import RAN, TrialRequest
from trtplug.errors import TrialFailedError, TrtplugError

if TYPE_CHECKING:
    from trtplug.backends.cuda_layer.interface import Buffer, CudaLayer, Stream


INSPECTOR_FILE = "inspector.json"


def main() -> None:
    """Entry point of the child."""
    die_with_parent()
    channel = take_stdout()
    request = TrialRequest(**json.loads(sys.stdin.readline()))

    import tensorrt as trt

    log = BuildLog(trt, Path(request.folder), verbose=True)
    try:
        layer = open_layer()
        said = {"problem": "", "sentence": run_engine(trt, request, log, layer)}
    except TrtplugError as error:
        said = {"problem": str(error)}
    os.write(channel, (json.dumps(said) + "\n").encode())
    # Teardown of the libraries could crash, and says nothing about the engine.
    os._exit(0)


def run_engine(trt: Any, request: TrialRequest, log: BuildLog, layer: CudaLayer) -> str:
    """Loads, inspects and runs; returns what was done, in a sentence.

    Raises:
        TrialFailedError: it cannot be loaded, or a run fails.
    """
    logger = log.logger
    trt.init_libnvinfer_plugins(logger, "")
    runtime = trt.Runtime(logger)
    registry = runtime.get_plugin_registry()
    for path in request.plugin_libraries:
        registry.load_library(path)
    if request.host_code:
        runtime.engine_host_code_allowed = True
    engine = runtime.deserialize_cuda_engine((Path(request.folder) / "engine").read_bytes())
    if engine is None:
        raise TrialFailedError(_with_errors("TensorRT cannot load the engine that it built", log))
    inspector = engine.create_engine_inspector()
    text = inspector.get_engine_information(trt.LayerInformationFormat.JSON)
    (Path(request.folder) / INSPECTOR_FILE).write_text(text, encoding="utf-8")
    if request.weightless:
        return "The engine was loaded where it was built, and not run: it has no weights."
    for position in range(engine.num_optimization_profiles):
        _run_profile(trt, engine, position, log, layer)
    name = layer.device().name
    return f"{RAN}, on {name}."


def _run_profile(trt: Any, engine: Any, position: int, log: BuildLog, layer: CudaLayer) -> None:
    """Runs one profile at its opt shapes.

    Raises:
        TrialFailedError: TensorRT says that it failed.
    """
    context = engine.create_execution_context()
    if context is None:
        raise TrialFailedError(_with_errors("TensorRT cannot make a context of the engine", log))
    stream = layer.stream()
    context.set_optimization_profile_async(position, stream.handle)
    names = [engine.get_tensor_name(i) for i in range(engine.num_io_tensors)]
    inputs = [n for n in names if engine.get_tensor_mode(n) == trt.TensorIOMode.INPUT]
    buffers = [_feed(engine, context, n, position, layer, stream) for n in inputs]
    context.infer_shapes()
    for name in names:
        if name not in inputs:
            buffer = layer.buffer(max(0, context.get_max_output_size(name)), stream)
            context.set_tensor_address(name, buffer.address)
            buffers.append(buffer)
    if not context.execute_async_v3(stream.handle):
        raise TrialFailedError(
            _with_errors(f"a run of the engine failed (profile {position})", log)
        )
    stream.synchronize()
    for buffer in buffers:
        buffer.free()


def _feed(
    engine: Any, context: Any, name: str, position: int, layer: CudaLayer, stream: Stream
) -> Buffer:
    """Gives one input its opt shape and values."""
    _, opt, _ = engine.get_tensor_profile_shape(name, position)
    shape = tuple(opt)
    context.set_input_shape(name, shape)
    dtype = engine.get_tensor_dtype(name)
    data = random_values(dtype.name, int(dtype.itemsize), shape)
    buffer = layer.buffer(len(data), stream)
    buffer.upload(data, stream)
    context.set_tensor_address(name, buffer.address)
    return buffer


def random_values(dtype: str, itemsize_bytes: int, shape: tuple[int, ...]) -> bytes:
    """Values of TensorRT's type of that name, always the same for one shape.

    Whole numbers are zero, since they may be indices; so are types that NumPy does not know.
    """
    import numpy as np

    random = np.random.default_rng(0)
    if dtype in ("FLOAT", "HALF", "BF16"):
        values = random.standard_normal(shape, dtype=np.float32)
        if dtype == "HALF":
            return values.astype(np.float16).tobytes()
        if dtype == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        return values.tobytes()
    if dtype == "BOOL":
        return random.integers(0, 2, shape, dtype=np.uint8).tobytes()
    return bytes(int(np.prod(shape)) * max(1, itemsize_bytes))


def _with_errors(what: str, log: BuildLog) -> str:
    said = "; ".join(log.messages("E")[-3:])
    return f"{what}: {said}" if said else what


if __name__ == "__main__":
    main()
