"""What every later stage relies on, and protobuf does not see to: refused here, by name.

Names must be text, since they go into documents, and to a builder that takes UTF-8. Protobuf lets a
file hold any bytes in a string field and hands them on as `bytes` (upb), or raises
UnicodeDecodeError when they are read (pure Python). And a node must have an output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.errors import ModelInvalidError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto


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
