"""External data of an ONNX model: checked against the file system, digested, never held in memory.

Format: `onnx.proto`, TensorProto.external_data (keys location, offset, length).
"""

from __future__ import annotations

import contextlib
import logging
import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from trtplug.errors import ExternalDataError
from trtplug.store import sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFile:
    """One data file beside the model."""

    location: str
    sha256: str


def check_external_data(proto: ModelProto, model: Path) -> tuple[ExternalFile, ...]:
    """Checks where every external tensor lies, and digests each data file once.

    Raises:
        ExternalDataError: a file is missing, too short, or outside the model's folder; it names the
            tensor and the location.
    """
    files: dict[str, Path] = {}
    for tensor in tensors_of(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            location, file = _check_tensor(tensor, model)
            files[location] = file
    return tuple(
        ExternalFile(location=location, sha256=sha256_of(files[location]))
        for location in sorted(files)
    )


def tensors_of(proto: ModelProto) -> Iterator[TensorProto]:
    """Every tensor in a model: initializers and attributes, in all graphs and functions."""
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        for node in function.node:
            for attribute in node.attribute:
                yield from _attribute_tensors(attribute)


def tensors_of_node(node: NodeProto) -> Iterator[TensorProto]:
    """Every tensor in a node's attributes, subgraphs included."""
    for attribute in node.attribute:
        yield from _attribute_tensors(attribute)


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from _attribute_tensors(attribute)


def _attribute_tensors(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    for sparse in attribute.sparse_tensors:
        yield from (sparse.values, sparse.indices)
    if attribute.HasField("sparse_tensor"):
        yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)
    for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
        yield from _graph_tensors(graph)


def _check_tensor(tensor: TensorProto, model: Path) -> tuple[str, Path]:
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")

    def refuse(problem: str) -> ExternalDataError:
        return ExternalDataError(
            path=str(model), tensor=tensor.name, location=location, problem=problem
        )

    file = _inside(location, model)
    if file is None:
        raise refuse("that is outside the model's folder, and is refused")
    if not file.is_file():
        raise refuse("there is no such file" if not file.exists() else "it is no regular file")
    offset = _whole_number(entries.get("offset", "0"))
    size = file.stat().st_size
    stated = entries.get("length")
    length = _whole_number(stated) if stated is not None else size - (offset or 0)
    if offset is None or length is None:
        raise refuse(f"offset {entries.get('offset')!r} or length {stated!r} is no whole number")
    wanted = _bytes_wanted(tensor)
    if wanted is not None and length < wanted:
        raise refuse(f"{length} bytes are there and {wanted} are needed")
    if offset + length > size:
        raise refuse(f"it ends at byte {size}; the tensor needs {offset + length}")
    return location, file


def _inside(location: str, model: Path) -> Path | None:
    """The file, if it lies in the model's folder also when every link is followed."""
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).is_absolute()
    if not location or "\0" in location or absolute or ".." in PurePosixPath(location).parts:
        return None
    folder = model.parent.resolve()
    try:
        file = (folder / location).resolve()
        # Not exists(): from Python 3.13 on neither it nor resolve() minds a loop of links.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            file.stat()
    except (OSError, RuntimeError) as error:  # a loop of links, a name too long for the system
        _log.info("external data %s is not used: %s", location, error)
        return None
    return file if file.is_relative_to(folder) else None


def _whole_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _bytes_wanted(tensor: TensorProto) -> int | None:
    """Bytes that the dims and the type ask for; None for types of no fixed size."""
    if tensor.data_type in (TensorProto.STRING, TensorProto.UNDEFINED):
        return None
    try:
        bits = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
    except (KeyError, TypeError, ValueError):
        return None
    packed = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
    bits = packed.get(TensorProto.DataType.Name(tensor.data_type), bits)
    return math.ceil(math.prod(tensor.dims) * bits / 8)
