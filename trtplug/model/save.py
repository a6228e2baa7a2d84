"""Writes a model piece by piece, so that its weights are never in memory twice.

A model to be written is `ModelParts`: nodes and tensors by reference to the model they come from,
and weights that are computed only when they are written. The file is what protobuf would have
written, graph and all in one message; only the largest single tensor is ever serialized at once.

External data stay external: they are copied in chunks into one file beside the new model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from trtplug.errors import ModelInvalidError, OutputInTheWayError
from trtplug.files import publishing
from trtplug.model.external import tensors_of_node
from trtplug.model.load import model_of
from trtplug.store import as_output_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.model.load import Model

    Array = np.ndarray[Any, np.dtype[Any]]

LARGEST_FILE = 2**31 - 1
"""Protobuf ends at 2 GiB: a larger model gets external data."""

_MARGIN = 1 << 20
"""For the tags and lengths of fields."""

CHUNK_BYTES = 1 << 22

_GRAPH_FIELD = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_NODE_FIELD = GraphProto.DESCRIPTOR.fields_by_name["node"].number
_TENSOR_FIELD = GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_FIELD = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

ALIGNMENT = 4096
"""Of large external tensors, so that runtimes can map them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NewTensor:
    """A weight that does not exist yet."""

    name: str
    dims: tuple[int, ...]
    elem_type: int
    make: Callable[[], Array]
    """Gives the values, of just this size and type."""
    external: bool
    """Whether it takes the place of external data."""

    @property
    def nbytes(self) -> int:
        """Size of the values."""
        size: int = helper.tensor_dtype_to_np_dtype(self.elem_type).itemsize
        return math.prod(self.dims) * size

    def header(self) -> TensorProto:
        """The tensor without its values."""
        return TensorProto(name=self.name, data_type=self.elem_type, dims=self.dims)

    def to_proto(self) -> TensorProto:
        """The tensor with its values."""
        tensor = self.header()
        tensor.raw_data = _raw(self.make())
        return tensor


Tensor = TensorProto | NewTensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelParts:
    """A model in pieces; what is unchanged is shared with the model it was made of."""

    head: ModelProto
    """All but the graph."""
    graph: GraphProto
    """The graph without nodes and initializers."""
    nodes: tuple[NodeProto, ...]
    tensors: tuple[Tensor, ...]
    folder: Path
    """Where external data of `nodes` and `tensors` lie."""

    def to_proto(self) -> ModelProto:
        """The model in one piece; external data stay references."""
        model = ModelProto()
        model.CopyFrom(self.head)
        model.graph.CopyFrom(self.graph)
        model.graph.node.extend(self.nodes)
        model.graph.initializer.extend(
            t.to_proto() if isinstance(t, NewTensor) else t for t in self.tensors
        )
        return model


def parts_of(model: ModelProto, folder: Path) -> ModelParts:
    """A model in pieces, weights by reference."""
    return ModelParts(
        head=without(model, ModelProto, "graph"),
        graph=without(model.graph, GraphProto, "node", "initializer"),
        nodes=tuple(model.graph.node),
        tensors=tuple(model.graph.initializer),
        folder=folder,
    )


def joined(parts: ModelParts, model: Model) -> Model:
    """A model like `model`, of these parts: for a step that follows on another."""
    return model_of(parts.to_proto(), model.path, model.sha256, model.external)


def without(message: Any, kind: Any, *fields: str) -> Any:  # noqa: ANN401
    """A copy of a protobuf message but for some fields, which are never touched."""
    copy = kind()
    for field, value in message.ListFields():
        if field.name in fields:
            continue
        if hasattr(value, "extend"):
            getattr(copy, field.name).extend(value)
        elif field.message_type is not None:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy


def save_model(parts: ModelParts, path: Path) -> None:
    """Writes a model, and its external data into `path` + `.data` where it has any.

    Both are complete before they get their names.

    Raises:
        OutputInTheWayError: the data file would replace one that the model is made from.
        OutputError: the disk is full, the folder is missing or not writable.
    """
    data = path.with_name(path.name + ".data")
    with (
        as_output_error(path),
        publishing(path) as draft,
        publishing(data) as data_draft,
        draft.open("wb") as file,
        _DataFile(data_draft, data, parts.folder) as store,
    ):
        _write(parts, file, store)


def save_beside(parts: ModelParts, path: Path) -> None:
    """Writes a model whose external data stay where they are: its reader must know their folder.

    Raises:
        ModelInvalidError: without its external data it would be larger than protobuf allows.
        OutputError: the disk is full, the folder is missing or not writable.
    """
    with as_output_error(path), path.open("wb") as file:
        _write(parts, file, _Elsewhere(path))


class _Elsewhere:
    """External data that are not written again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, header: TensorProto, make: Callable[[], Array | bytes]) -> TensorProto:  # noqa: ARG002
        """There is no room for new ones."""
        problem = "what the builder is to be given passes 2 GiB, where protobuf ends"
        advice = "save the model with external data, or name fewer sites with --plugin-sites"
        raise ModelInvalidError(path=str(self._path), problem=problem, advice=advice)

    def copy(self, tensor: TensorProto) -> TensorProto:
        """The reference as it is."""
        return tensor


def _write(parts: ModelParts, file: BinaryIO, store: _DataFile | _Elsewhere) -> None:
    graph = parts.graph.SerializeToString()
    nodes = [_node_bytes(node, store) for node in parts.nodes]
    fixed = len(graph) + sum(_field_size(_NODE_FIELD, len(n)) for n in nodes)
    stay = sum(_tensor_size(t) for t in parts.tensors if not _is_external(t))
    spill = fixed + stay + parts.head.ByteSize() + _MARGIN > LARGEST_FILE
    pieces = [_piece(t, store, spill=spill) for t in parts.tensors]
    sizes = [_tensor_size(p) for p in pieces]
    total = fixed + sum(_field_size(_TENSOR_FIELD, size) for size in sizes)
    file.write(parts.head.SerializeToString())
    file.write(_field_start(_GRAPH_FIELD, total))
    file.write(graph)
    for node in nodes:
        file.write(_field_start(_NODE_FIELD, len(node)))
        file.write(node)
    for piece, size in zip(pieces, sizes, strict=True):
        file.write(_field_start(_TENSOR_FIELD, size))
        _write_tensor(piece, file)


def _is_external(tensor: Tensor) -> bool:
    if isinstance(tensor, NewTensor):
        return tensor.external
    return tensor.data_location == TensorProto.EXTERNAL


def _piece(tensor: Tensor, store: _DataFile | _Elsewhere, *, spill: bool) -> Tensor:
    """The tensor as it is written: with its values, or with a reference to the data file."""
    if isinstance(tensor, NewTensor):
        return store.add(tensor.header(), tensor.make) if tensor.external or spill else tensor
    if tensor.data_location == TensorProto.EXTERNAL:
        return store.copy(tensor)
    if spill and len(tensor.raw_data) >= ALIGNMENT:
        return store.add(without(tensor, TensorProto, "raw_data"), lambda: tensor.raw_data)
    return tensor


def _node_bytes(node: NodeProto, store: _DataFile | _Elsewhere) -> bytes:
    data = node.SerializeToString()
    # External data have a key of that name; to look through every node costs more than the rest.
    if b"location" not in data:
        return data
    copy = NodeProto.FromString(data)
    for tensor in tensors_of_node(copy):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(store.copy(tensor))
    return copy.SerializeToString()


class _DataFile:
    """The external data of the new model, written as its tensors come."""

    def __init__(self, draft: Path, final: Path, source: Path) -> None:
        self._draft = draft
        self._final = final
        self._source = source
        self._file: BinaryIO | None = None

    def __enter__(self) -> _DataFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, header: TensorProto, make: Callable[[], Array | bytes]) -> TensorProto:
        """Appends new values; the tensor that refers to them."""
        values = make()
        raw = values if isinstance(values, bytes) else _raw(values)
        start = self._start(len(raw))
        self._open().write(raw)
        return self._refer(header, start, len(raw))

    def copy(self, tensor: TensorProto) -> TensorProto:
        """Appends the values of an external tensor, in chunks."""
        entries = {e.key: e.value for e in tensor.external_data}
        source = self._source / entries["location"]
        if self._final.exists() and self._final.samefile(source):
            problem = "the model's own weights are in it"
            raise OutputInTheWayError(path=str(self._final), problem=problem)
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", 0)) or source.stat().st_size - offset
        start = self._start(length)
        with source.open("rb") as file:
            file.seek(offset)
            for chunk in _chunks(file, length):
                self._open().write(chunk)
        return self._refer(without(tensor, TensorProto, "external_data"), start, length)

    def _open(self) -> BinaryIO:
        if self._file is None:
            self._file = self._draft.open("wb")
        return self._file

    def _start(self, length: int) -> int:
        file = self._open()
        if length >= ALIGNMENT and file.tell() % ALIGNMENT:
            file.write(bytes(ALIGNMENT - file.tell() % ALIGNMENT))
        return file.tell()

    def _refer(self, tensor: TensorProto, start: int, length: int) -> TensorProto:
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": self._final.name, "offset": str(start), "length": str(length)}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        return tensor


def _chunks(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length > 0:
        chunk = file.read(min(length, CHUNK_BYTES))
        if not chunk:
            raise OSError(0, f"{os.fspath(file.name)} ended {length} bytes early")
        length -= len(chunk)
        yield chunk


def _raw(values: Array) -> bytes:
    """ONNX's raw data: little-endian, row by row."""
    if values.dtype.byteorder == ">":
        values = values.astype(values.dtype.newbyteorder("<"))
    return np.ascontiguousarray(values).tobytes()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field_start(number: int, length: int) -> bytes:
    """Tag and length of a length-delimited field (protobuf wire type 2)."""
    return _varint(number << 3 | 2) + _varint(length)


def _field_size(number: int, length: int) -> int:
    return len(_field_start(number, length)) + length


def _tensor_size(tensor: Tensor) -> int:
    if isinstance(tensor, NewTensor):
        return tensor.header().ByteSize() + _field_size(_RAW_FIELD, tensor.nbytes)
    return tensor.ByteSize()


def _write_tensor(tensor: Tensor, file: BinaryIO) -> None:
    if not isinstance(tensor, NewTensor):
        file.write(tensor.SerializeToString())
        return
    file.write(tensor.header().SerializeToString())
    file.write(_field_start(_RAW_FIELD, tensor.nbytes))
    raw = _raw(tensor.make())
    if len(raw) != tensor.nbytes:
        raise AssertionError(f"{tensor.name}: {len(raw)} bytes made, {tensor.nbytes} announced")
    file.write(raw)
