"""An ONNX file as a Model: parsed, digested, its external data checked but never read in.

Model files are untrusted. What is refused here is refused by name, before any builder starts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError
from onnx import ModelProto, ValueInfoProto

from trtplug.errors import ModelInvalidError
from trtplug.files import open_regular, read_bytes
from trtplug.model.external import ExternalFile, check_external_data
from trtplug.model.pieces import LARGE_BYTES, parse_in_pieces
from trtplug.tensor import Dim, TensorSpec, dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import GraphProto, NodeProto


def refuse_malformed(proto: ModelProto, path: Path) -> None:
    """Looks at every node, and at every name that is used later.

    Raises:
        ModelInvalidError: a name is no UTF-8, or a node has no output.
    """
    try:
        for entry in proto.opset_import:
            _join(entry.domain)
        _graph(proto.graph)
        for function in proto.functions:
            _join(function.name, function.domain, *function.input, *function.output)
            _nodes(function.node)
    except (TypeError, UnicodeDecodeError) as error:
        raise _damaged(path, "a name in it is not UTF-8 text") from error
    except _NoOutputError as error:
        raise _damaged(path, f"node {error} has no output") from error


class _NoOutputError(Exception):
    """Name and type of a node."""


def _damaged(path: Path, problem: str) -> ModelInvalidError:
    advice = "the file is damaged; export it again"
    return ModelInvalidError(path=str(path), problem=problem, advice=advice)


def _join(*texts: str) -> None:
    """Raises TypeError where one of them is `bytes`."""
    "".join(texts)


def _graph(graph: GraphProto) -> None:
    _join(graph.name, *(t.name for t in graph.initializer))
    _join(*(t.values.name for t in graph.sparse_initializer))
    for values in (graph.input, graph.output, graph.value_info):
        for value in values:
            _value(value)
    _nodes(graph.node)


def _value(value: ValueInfoProto) -> None:
    _join(value.name, *(d.dim_param for d in value.type.tensor_type.shape.dim))


def _nodes(nodes: Iterable[NodeProto]) -> None:
    for node in nodes:
        _join(node.name, node.op_type, node.domain, *node.input, *node.output)
        if not node.output:
            raise _NoOutputError(f"{node.name!r} ({node.op_type})")
        for attribute in node.attribute:
            _join(attribute.name, attribute.ref_attr_name)
            if attribute.HasField("g"):
                _graph(attribute.g)
            for graph in attribute.graphs:
                _graph(graph)
            if attribute.HasField("t"):
                _join(attribute.t.name)


_LARGEST_PROTOBUF = 2**31 - 1
_LARGEST_OPSET = 999
"""Far above any there is; ONNX's own library takes 32 bits only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An ONNX model as it came in; `proto` is shared and must not be changed."""

    path: Path
    sha256: str
    """Of the file's bytes; with external data, of the file's digest and those of the data files."""
    proto: ModelProto
    """Without external data."""
    inputs: tuple[TensorSpec, ...]
    """What the user feeds: inputs that no initializer gives a value."""
    outputs: tuple[TensorSpec, ...]
    opset: int
    """Version of the standard operator set."""
    ir_version: int
    external: tuple[ExternalFile, ...]


def load_model(path: Path) -> Model:
    """Reads and checks an ONNX file.

    Raises:
        FileUnreadableError: no such file, a folder, no permission.
        ModelInvalidError: not ONNX, empty, truncated, or without what every model has.
        ExternalDataError: external data missing, too short, or outside the model's folder.
    """
    proto, sha256 = _read(path)
    refuse_malformed(proto, path)
    external = check_external_data(proto, path)
    return model_of(proto, path, _digest(sha256, external), external)


def model_of(
    proto: ModelProto, path: Path, sha256: str, external: tuple[ExternalFile, ...]
) -> Model:
    """A model that is in memory already.

    Raises:
        ModelInvalidError: it lacks what every model has.
    """
    initialized = {t.name for t in proto.graph.initializer}
    initialized |= {t.values.name for t in proto.graph.sparse_initializer}
    inputs = [v for v in proto.graph.input if v.name not in initialized]
    for value in inputs:
        _refuse_unknown_rank(value, path)
    return Model(
        path=path,
        sha256=sha256,
        proto=proto,
        inputs=tuple(_spec(v, path) for v in inputs),
        outputs=tuple(_spec(v, path) for v in proto.graph.output),
        opset=_opset(proto, path),
        ir_version=proto.ir_version,
        external=external,
    )


def _read(path: Path) -> tuple[ModelProto, str]:
    """The message, and the digest of the file's bytes."""
    with open_regular(path) as stream:
        size = stream.seek(0, 2)
    if not size:
        raise ModelInvalidError(path=str(path), problem="the file is empty")
    if size > _LARGEST_PROTOBUF:
        raise ModelInvalidError(
            path=str(path),
            problem=f"{size} bytes; protobuf ends at 2 GiB",
            advice="save the model with external data",
        )
    try:
        proto, sha256 = parse_in_pieces(path) if size > LARGE_BYTES else _parse(read_bytes(path))
    except DecodeError as error:
        advice = "the file is truncated, damaged, or of another kind; export it again"
        raise ModelInvalidError(
            path=str(path), problem="it is not an ONNX protobuf", advice=advice
        ) from error
    if not proto.HasField("graph") or not proto.graph.output:
        problem = "it holds no graph" if not proto.HasField("graph") else "its graph has no outputs"
        raise ModelInvalidError(path=str(path), problem=problem, advice="export the model again")
    return proto, sha256


def _parse(data: bytes) -> tuple[ModelProto, str]:
    return ModelProto.FromString(data), hashlib.sha256(data).hexdigest()


def _opset(proto: ModelProto, path: Path) -> int:
    for entry in proto.opset_import:
        if entry.domain in ("", "ai.onnx"):
            if not 1 <= entry.version <= _LARGEST_OPSET:
                problem = f"it asks for version {entry.version} of the standard operator set"
                raise ModelInvalidError(path=str(path), problem=problem)
            return entry.version
    if proto.ir_version < 3:  # IR 3 (2017) brought opset_import; before it there was opset 1 alone.
        return 1
    raise ModelInvalidError(
        path=str(path),
        problem="opset_import does not name the standard operator set",
        advice="export the model again with a current exporter",
    )


def _digest(own: str, external: tuple[ExternalFile, ...]) -> str:
    if not external:
        return own
    parts = [own, *(f"{f.location}\0{f.sha256}" for f in external)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _refuse_unknown_rank(value: ValueInfoProto, path: Path) -> None:
    """A scalar has a shape of no axes; without any shape not even the number of axes is known."""
    if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
        raise ModelInvalidError(
            path=str(path),
            problem=f"input {value.name!r} has no shape, so that its number of axes is unknown",
            advice="export the model again with the shape of each input; axes may be dynamic",
        )


def _spec(value: ValueInfoProto, path: Path) -> TensorSpec:
    kind = value.type.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        raise ModelInvalidError(
            path=str(path),
            problem=f"{value.name!r} is a {str(kind).removesuffix('_type')}, not a tensor",
            advice="TensorRT takes and gives tensors only",
        )
    tensor = value.type.tensor_type
    return TensorSpec(
        name=value.name,
        dtype=dtype_name(tensor.elem_type),
        shape=tuple(
            _dim(d.WhichOneof("value"), d.dim_value, d.dim_param) for d in tensor.shape.dim
        ),
    )


def _dim(kind: str | None, size: int, name: str) -> Dim:
    # Exporters write 0 and -1 for "dynamic" in dim_value; neither is a size of a real axis here.
    if kind == "dim_value" and size > 0:
        return size
    return name if kind == "dim_param" and name else None
