"""ONNX Runtime on the CPU, as the reference: the only module that imports it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from trtplug.errors import BackendMissingError, ReferenceFailedError
from trtplug.tensor import find_element_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from onnx import ModelProto

    from trtplug.tensor import Sizes, TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

_EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""Where external data lie, for a model that is given as bytes."""

_FIRST_WITH_OVERLOADS = (1, 27)
"""ONNX Runtime 1.20.1 to 1.26.0 run one body for all functions that differ in overload alone.

1.27.0 to 1.32.0 tell them apart. Seen on the rewritten PP-OCRv4 det and cls models, a rewritten If
and a pair of sites with and without a residual; between those, the versions tried were 1.23.2,
1.24.1, 1.24.4, 1.25.1, 1.28.0, 1.29.0, 1.30.0 and 1.31.1.
"""


class Reference:
    """A model loaded for the CPU. It is not for sharing between threads."""

    def __init__(self, path: Path, *, optimize: bool = False, reveal: Sequence[str] = ()) -> None:
        """Loads the file; external data are found beside it.

        A bfloat16 model is run as a float32 copy, see `trtplug.model.widen`. Where ONNX Runtime
        ignores the overloads of functions, it gets a copy with the functions inlined, see
        `overload_notice`.

        Args:
            path: the ONNX file.
            optimize: let ONNX Runtime rewrite the graph. Without it every node runs as written,
                which is what a reference has to do.
            reveal: tensors of the main graph that become outputs too.

        Raises:
            BackendMissingError: ONNX Runtime is not installed.
            ReferenceFailedError: it refuses the model.
        """
        runtime = _runtime()
        self.path = path
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # What goes wrong is raised; its log would only repeat it.
        options.use_deterministic_compute = True
        if not optimize:
            level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.graph_optimization_level = level
        options.add_session_config_entry(_EXTERNAL_FOLDER, str(path.parent))
        with _as_ours(path):
            copy = _copy_to_run(path, reveal, inline=_ignores_overloads(runtime))
            self._session = runtime.InferenceSession(
                str(path) if copy is None else copy, options, providers=["CPUExecutionProvider"]
            )

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """All outputs by name, in the model's order.

        Raises:
            ReferenceFailedError: a node fails, or an input does not fit.
        """
        names = [output.name for output in self._session.get_outputs()]
        with _as_ours(self.path):
            return dict(zip(names, self._session.run(names, dict(feeds)), strict=True))


def random_feeds(
    specs: Sequence[TensorSpec], sizes: Mapping[str, Sizes], seed: int
) -> dict[str, Array]:
    """Inputs drawn from a fixed seed: floats from a normal distribution, whole numbers 0 or 1.

    Whole numbers may be indices or lengths: 0 and 1 are the ones most models can take.

    Raises:
        ReferenceFailedError: an input of a type that NumPy has not.
    """
    random = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for spec in specs:
        element = find_element_type("float" if spec.dtype == "bfloat16" else spec.dtype)
        if element is None or not element.numpy:
            problem = f"input {spec.name!r} is of type {spec.dtype}"
            raise ReferenceFailedError(path=spec.name, problem=problem)
        dtype, shape = np.dtype(element.numpy), sizes[spec.name]
        if np.issubdtype(dtype, np.floating):
            feeds[spec.name] = random.standard_normal(shape).astype(dtype)
        else:
            feeds[spec.name] = random.integers(0, 2, shape).astype(dtype)
    return feeds


def overload_notice(path: Path) -> str | None:
    """What to know about a comparison that ran `path`; None where the file itself was run.

    Raises:
        BackendMissingError: ONNX Runtime is not installed.
        ReferenceFailedError: the file cannot be read.
    """
    import onnx

    runtime = _runtime()
    if not _ignores_overloads(runtime):
        return None
    with _as_ours(path):
        if not _has_overloads(onnx.load(path, load_external_data=False)):
            return None
    first = ".".join(map(str, _FIRST_WITH_OVERLOADS))
    return (
        f"ONNX Runtime {runtime.__version__} ignores the overloads of functions, so {path} was "
        f"run with its functions inlined by onnx; to run the file itself, use {first} or newer"
    )


def _copy_to_run(path: Path, reveal: Sequence[str], *, inline: bool) -> bytes | None:
    """What to run in place of the file, serialized, external data left outside; None for none.

    In float32 where it is in bfloat16, with the tensors `reveal` as outputs too.
    """
    import onnx
    from onnx import inliner

    from trtplug.model.widen import has_bfloat16, widen

    proto = onnx.load(path, load_external_data=False)
    wide, flat = has_bfloat16(proto), inline and _has_overloads(proto)
    there = {output.name for output in proto.graph.output}
    # Without a type: ONNX Runtime infers it.
    new = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(reveal) if name not in there]
    proto.graph.output.extend(new)
    if wide:
        proto = widen(proto, path.parent)
    if flat:
        proto = inliner.inline_local_functions(proto)
    return proto.SerializeToString() if wide or flat or new else None


def _has_overloads(proto: ModelProto) -> bool:
    return any(function.overload for function in proto.functions)


def _ignores_overloads(runtime: Any) -> bool:  # noqa: ANN401
    major, minor = runtime.__version__.split(".")[:2]
    return (int(major), int(minor)) < _FIRST_WITH_OVERLOADS


def _runtime() -> Any:  # noqa: ANN401
    try:
        import onnxruntime
    except ImportError as error:
        raise BackendMissingError(
            backend="onnxruntime",
            problem="it is not installed",
            advice="pip install 'trtplug[check]'",
        ) from error
    return onnxruntime


@contextlib.contextmanager
def _as_ours(path: Path) -> Iterator[None]:
    """ONNX Runtime raises a dozen types of its own; each becomes one of ours."""
    try:
        yield
    except Exception as error:
        problem = str(error).splitlines()[0][:500] if str(error) else type(error).__name__
        raise ReferenceFailedError(path=str(path), problem=problem) from error
