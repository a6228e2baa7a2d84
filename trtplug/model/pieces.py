"""Parses a large ONNX file in pieces, so that its bytes and its message are not both in memory.

The wire format (protobuf.dev, "Encoding") is a row of fields, each a tag and a value. A nested
message may be parsed field by field into its parent: that is what protobuf calls merging.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO, Protocol

from google.protobuf.message import DecodeError
from onnx import GraphProto, ModelProto

if TYPE_CHECKING:
    from pathlib import Path

LARGE_BYTES = 64 << 20
"""Below it, parsing at once is faster and the second copy does not matter."""

_DELIMITED = 2
_LONGEST_VARINT = 10

_GRAPH = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_NODE = GraphProto.DESCRIPTOR.fields_by_name["node"].number
_INITIALIZER = GraphProto.DESCRIPTOR.fields_by_name["initializer"].number


def parse_in_pieces(path: Path) -> tuple[ModelProto, str]:
    """The message in a file, and the SHA-256 of the file.

    Raises:
        DecodeError: the file is no such message.
        OSError: it cannot be read.
    """
    model = ModelProto()
    with path.open("rb") as file:
        reader = _Reader(file, path.stat().st_size)
        while reader.left:
            tag, head = reader.tag()
            if tag == _GRAPH << 3 | _DELIMITED:
                _merge_graph(model.graph, reader, reader.varint()[0])
            else:
                model.MergeFromString(head + reader.value(tag))
        return model, reader.digest.hexdigest()


def _merge_graph(graph: GraphProto, reader: _Reader, length: int) -> None:
    end = reader.left - length
    if end < 0:
        raise DecodeError("the graph is longer than the file")
    graph.SetInParent()
    while reader.left > end:
        tag, head = reader.tag()
        if tag == _NODE << 3 | _DELIMITED:
            graph.node.add().MergeFromString(reader.take(reader.varint()[0]))
        elif tag == _INITIALIZER << 3 | _DELIMITED:
            graph.initializer.add().MergeFromString(reader.take(reader.varint()[0]))
        else:
            graph.MergeFromString(head + reader.value(tag))
    if reader.left != end:
        raise DecodeError("a field reaches beyond its graph")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Reader:
    """Bytes of a file in order, digested as they go by."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.left = size
        self.digest: _Digest = hashlib.sha256()
        self._file = file

    def take(self, count: int) -> bytes:
        """The next bytes."""
        if count > self.left:
            raise DecodeError(f"{count} bytes are announced and {self.left} left")
        data = self._file.read(count)
        if len(data) != count:
            raise DecodeError("the file became shorter while it was being read")
        self.left -= count
        self.digest.update(data)
        return data

    def varint(self) -> tuple[int, bytes]:
        """A number of 7 bits a byte, low bits first; and its bytes."""
        data = b""
        value = 0
        for position in range(_LONGEST_VARINT):
            byte = self.take(1)
            data += byte
            value |= (byte[0] & 0x7F) << (7 * position)
            if byte[0] < 0x80:
                return value, data
        raise DecodeError("a number of more than 10 bytes")

    def tag(self) -> tuple[int, bytes]:
        """The tag of the next field, and its bytes."""
        return self.varint()

    def value(self, tag: int) -> bytes:
        """The bytes of a field's value, its length included."""
        match tag & 7:
            case 0:
                return self.varint()[1]
            case 1:
                return self.take(8)
            case 2:
                length, data = self.varint()
                return data + self.take(length)
            case 5:
                return self.take(4)
            case kind:
                raise DecodeError(f"unknown wire type {kind}")
