"""What the ONNX standard says of an operator, and whether a node keeps to it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import onnx
from onnx import AttributeProto

if TYPE_CHECKING:
    from trtplug.model.graph import Node

_log = logging.getLogger(__name__)


_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional


class Schemas:
    """The standard operators of one opset, looked up once each."""

    def __init__(self, opset: int) -> None:
        self._opset = opset
        self._known: dict[str, onnx.defs.OpSchema | None] = {}
        self._types: dict[str, dict[str, int]] = {}
        self._required: dict[str, tuple[str, ...]] = {}

    def of(self, node: Node) -> onnx.defs.OpSchema | None:
        """The description of a node's operator; None where the standard has none of that name."""
        if node.domain:
            return None
        if node.op_type not in self._known:
            try:
                found = onnx.defs.get_schema(node.op_type, self._opset, "")
            except onnx.defs.SchemaError:
                _log.debug("ONNX has no operator %s in opset %d", node.op_type, self._opset)
                found = None
            self._known[node.op_type] = found
        return self._known[node.op_type]

    def problem(self, node: Node) -> str | None:
        """How a node breaks its description, with what it has and what it should have."""
        schema = self.of(node)
        if schema is None:
            return None
        counts = (
            ("inputs", len(node.inputs), schema.min_input, schema.max_input),
            ("outputs", len(node.outputs), schema.min_output, schema.max_output),
        )
        for what, count, least, most in counts:
            if not least <= count <= most:
                wanted = f"{least}" if least == most else f"{least} to {most}"
                return f"it has {count} {what}; {wanted} wanted"
        for slot, formal in enumerate(schema.inputs[: len(node.inputs)]):
            if not node.inputs[slot] and formal.option != _OPTIONAL:
                return f"its input {slot} ({formal.name}) is left out; it is required"
        return self._attribute_problem(node, schema)

    def _attribute_problem(self, node: Node, schema: onnx.defs.OpSchema) -> str | None:
        if node.op_type not in self._types:
            # ONNX numbers the types of attributes alike in its messages and its descriptions.
            described: dict[str, Any] = schema.attributes
            self._types[node.op_type] = {k: a.type.value for k, a in described.items()}
            required = tuple(k for k, a in described.items() if a.required)
            self._required[node.op_type] = required
        types = self._types[node.op_type]
        for attribute in node.proto.attribute:
            wanted = types.get(attribute.name, attribute.type)
            if attribute.type != wanted:
                return (
                    f"its attribute {attribute.name} is of type {_type_name(attribute.type)}; "
                    f"{_type_name(wanted)} wanted"
                )
        there = {attribute.name for attribute in node.proto.attribute}
        missing = [n for n in self._required[node.op_type] if n not in there]
        return f"it lacks the attribute {missing[0]}" if missing else None


def _type_name(number: int) -> str:
    known = AttributeProto.AttributeType.values()
    return AttributeProto.AttributeType.Name(number) if number in known else f"number {number}"
