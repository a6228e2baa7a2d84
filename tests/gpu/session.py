"""TensorRT itself, for the probes: build a network, run an engine, read the cache and the log.

Opened once in a step's process: from then on stdout and stderr of the process are its `build.log`.
Variables are named after classes of the bindings, so that a test can hold what is used here against
the real ones (`tests.backends.trt.uses`).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.gpu.place import REPO
from trtplug.backends.build_log import BuildLog
from trtplug.backends.cuda_layer.find import open_layer
from trtplug.backends.tactic_table import CandidateTable
from trtplug.backends.trt.config import creation_flags
from trtplug.backends.trt.tactic_log import parse_tactic_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto

    Profile = Mapping[str, tuple[Sequence[int], Sequence[int], Sequence[int]]]

WARM_UP, SAMPLES, RUNS_A_SAMPLE = 3, 9, 20
_INVALID = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A build: an engine, or why there is none."""

    plan: bytes | None
    cache: bytes
    keys: dict[str, str]
    """Of the timing cache: key -> hash of the tactic."""
    tables: tuple[CandidateTable, ...]
    errors: tuple[str, ...]
    """What the builder and the parser said."""

    @property
    def problem(self) -> str:
        """Why there is no engine; empty where there is one."""
        last = self.errors[-1] if self.errors else "TensorRT gave no reason"
        return "" if self.plan is not None else last[:300]


class Session:
    """TensorRT and CUDA in this process."""

    def __init__(self, folder: Path) -> None:
        import tensorrt as trt

        self.trt: Any = trt
        self._log = BuildLog(trt, folder, verbose=True)
        self.logger = self._log.logger
        trt.init_libnvinfer_plugins(self.logger, "")
        self.layer = open_layer()
        file = Path(trt.__file__).resolve()
        self.double = (REPO / "tests" / "doubles") in file.parents

    def build(
        self,
        model: ModelProto,
        *,
        flags: Sequence[str] = (),
        cache: bytes = b"",
        profile: Profile | None = None,
        level: int | None = None,
        plugins: bool = True,
    ) -> Built:
        """Builds, with an editable timing cache.

        Args:
            model: the network.
            flags: further builder flags, by name.
            cache: what the timing cache begins with.
            profile: shapes of dynamic inputs.
            level: optimization level.
            plugins: whether the network has plugins of the ahead-of-time form.
        """
        trt, begin = self.trt, self._log.size()
        builder = trt.Builder(self.logger)
        network = builder.create_network(creation_flags(trt, ahead_of_time=plugins))
        parser = trt.OnnxParser(network, self.logger)
        if not parser.parse(model.SerializeToString()):
            said = tuple(parser.get_error(i).desc() for i in range(parser.num_errors))
            return Built(plan=None, cache=b"", keys={}, tables=(), errors=said)
        config = builder.create_builder_config()
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for name in ("EDITABLE_TIMING_CACHE", *flags):
            config.set_flag(getattr(trt.BuilderFlag, name))
        if level is not None:
            config.builder_optimization_level = level
        if profile:
            config.add_optimization_profile(self._profile(builder, profile))
        held = config.create_timing_cache(cache)
        if not config.set_timing_cache(held, False):
            raise RuntimeError("TensorRT refuses a timing cache of its own making")
        plan = builder.build_serialized_network(network, config)
        return self._built(plan, held, begin)

    def _profile(self, builder: Any, shapes: Profile) -> Any:
        profile = builder.create_optimization_profile()
        for name, (low, opt, high) in shapes.items():
            profile.set_shape(name, tuple(low), tuple(opt), tuple(high))
        return profile

    def _built(self, plan: Any, cache: Any, begin: int) -> Built:
        with self._log.path.open("rb") as file:
            file.seek(begin)
            text = file.read().decode("utf-8", "replace")
        return Built(
            plan=None if plan is None else bytes(memoryview(plan)),
            cache=bytes(memoryview(cache.serialize())),
            keys={str(k): f"0x{cache.query(k).tacticHash:x}" for k in cache.queryKeys()},
            tables=parse_tactic_text(text).tables,
            errors=tuple(ln.partition("[E] ")[2] for ln in text.splitlines() if "[E] " in ln),
        )

    def edit(self, blob: bytes, values: Mapping[str, tuple[int, float] | None]) -> bytes | None:
        """A cache with other winners (None deletes one); None where TensorRT refuses an edit."""
        trt = self.trt
        config = trt.Builder(self.logger).create_builder_config()
        config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
        cache = config.create_timing_cache(blob)
        config.set_timing_cache(cache, False)
        for text, given in values.items():
            # A time that is no number deletes the entry (NvInfer.h, ITimingCache::update).
            number, time_ms = given or (1, float("nan"))
            entry = trt.TimingCacheValue(number, time_ms)
            if not cache.update(trt.TimingCacheKey.parse(text), entry):
                return None
        return bytes(memoryview(cache.serialize()))

    def routes(self) -> str:
        """The build routes, as JSON; empty where there are none."""
        config = self.trt.Builder(self.logger).create_builder_config()
        return str(config.all_build_routes) if hasattr(config, "all_build_routes") else ""

    def engine(self, plan: bytes) -> Engine:
        """An engine, loaded.

        Raises:
            RuntimeError: TensorRT cannot load it.
        """
        runtime = self.trt.Runtime(self.logger)
        engine = runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise RuntimeError("TensorRT cannot load an engine that it built")
        return Engine(self, runtime, engine)


class Engine:
    """A loaded engine, with one context."""

    def __init__(self, session: Session, runtime: Any, engine: Any) -> None:
        # The runtime must outlive the engine.
        self._runtime, self.native = runtime, engine
        self._session, self._trt = session, session.trt
        self._context = engine.create_execution_context()
        if self._context is None:
            raise RuntimeError("TensorRT cannot make a context of the engine")
        self._stream = session.layer.stream()
        self._profiler: Any = None

    def inspector_text(self) -> str:
        """The inspector's JSON."""
        inspector = self.native.create_engine_inspector()
        return str(inspector.get_engine_information(self._trt.LayerInformationFormat.JSON))

    def numpy_type(self, name: str) -> Any:
        """NumPy's type of an input or output."""
        dtype = self.native.get_tensor_dtype(name)
        return {"FLOAT": np.float32, "HALF": np.float16}[dtype.name]

    def run(
        self, feeds: Mapping[str, Any], outputs: Mapping[str, tuple[tuple[int, ...], Any]]
    ) -> dict[str, Any]:
        """One run; outputs by name, of the shapes and NumPy types given.

        Raises:
            RuntimeError: TensorRT says that it failed.
        """
        held = self._bind(feeds)
        taken = {n: self._buffer(n, shape, dtype) for n, (shape, dtype) in outputs.items()}
        self._execute()
        found = {}
        for name, (shape, dtype) in outputs.items():
            size = int(np.prod(shape)) * np.dtype(dtype).itemsize
            data = taken[name].download(size, self._stream)
            found[name] = np.frombuffer(bytes(data), dtype).reshape(shape)
        for buffer in (*held, *taken.values()):
            buffer.free()
        return found

    def median_us(
        self, feeds: Mapping[str, Any], outputs: Mapping[str, tuple[tuple[int, ...], Any]]
    ) -> tuple[float, list[float]]:
        """Median time of a run in microseconds, and the samples; warm, back to back."""
        layer, stream = self._session.layer, self._stream
        held = self._bind(feeds)
        held += [self._buffer(n, shape, dtype) for n, (shape, dtype) in outputs.items()]
        begin, end, samples = layer.event(), layer.event(), []
        for _ in range(WARM_UP + SAMPLES):
            begin.record(stream)
            for _ in range(RUNS_A_SAMPLE):
                self._enqueue()
            end.record(stream)
            samples.append(end.ms_since(begin) * 1e3 / RUNS_A_SAMPLE)
        for buffer in held:
            buffer.free()
        return statistics.median(samples[WARM_UP:]), samples[WARM_UP:]

    def layer_times_us(
        self, feeds: Mapping[str, Any], outputs: Mapping[str, tuple[tuple[int, ...], Any]]
    ) -> dict[str, float] | None:
        """Median time of each layer by TensorRT's profiler; None where the bindings lack it."""
        base = getattr(self._trt, "IProfiler", None)
        if base is None:
            return None
        times: dict[str, list[float]] = {}

        class Profiler(base):  # type: ignore[misc]
            def __init__(self) -> None:
                base.__init__(self)

            def report_layer_time(self, layer_name: str, ms: float) -> None:
                times.setdefault(layer_name, []).append(ms * 1e3)

        context = self._context
        # Held as long as the context is: the bindings need not.
        context.profiler = self._profiler = Profiler()
        for _ in range(WARM_UP + SAMPLES):
            self.run(feeds, outputs)
        return {name: statistics.median(t[WARM_UP:] or t) for name, t in times.items()}

    def _bind(self, feeds: Mapping[str, Any]) -> list[Any]:
        held = []
        for name, array in feeds.items():
            context, data = self._context, np.ascontiguousarray(array)
            context.set_input_shape(name, tuple(data.shape))
            buffer = self._session.layer.buffer(data.nbytes, self._stream)
            buffer.upload(data.tobytes(), self._stream)
            context.set_tensor_address(name, buffer.address)
            held.append(buffer)
        return held

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        context = self._context
        least = int(np.prod(shape)) * np.dtype(dtype).itemsize
        size = max(least, int(context.get_max_output_size(name)))
        buffer = self._session.layer.buffer(size, self._stream)
        buffer.upload(bytes(size), self._stream)
        context.set_tensor_address(name, buffer.address)
        return buffer

    def _enqueue(self) -> None:
        context = self._context
        if not context.execute_async_v3(self._stream.handle):
            raise RuntimeError("execute_async_v3 says that it failed")

    def _execute(self) -> None:
        self._enqueue()
        self._stream.synchronize()


def winners(tables: Sequence[CandidateTable]) -> dict[str, str]:
    """Key -> hash that was taken, of each table."""
    return {t.key: t.selected for t in tables if t.selected}
