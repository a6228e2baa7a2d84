"""Writes a model in which some nodes compute in another type, with casts where types meet.

A tensor exists under its own name in one type, and is cast at most once to the other. A cast of the
model that has become one to the type it reads is left out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from trtplug.model.constants import read_tensor
from trtplug.model.graph import Graph, Node, attributes
from trtplug.model.save import ModelParts, NewTensor, Tensor, without
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.model.load import Model
    from trtplug.model.precision_rules import Rules

    Array = np.ndarray[Any, np.dtype[Any]]

FIRST_IR_WITHOUT_WEIGHT_INPUTS = 4


def write_in_precision(
    model: Model, graph: Graph, low: frozenset[Node], rules: Rules, *, match_io: bool
) -> ModelParts:
    """The model with the nodes in `low` computing in the rules' type."""
    return _Writer(model, graph, low, rules, match_io).write()


class _Writer:
    """One model being written, node by node in the graph's order."""

    def __init__(
        self, model: Model, graph: Graph, low: frozenset[Node], rules: Rules, match_io: bool
    ) -> None:
        self._model = model
        self._graph = graph
        self._low = low
        self._rules = rules
        self._match_io = match_io
        self._elem_type = element_type(rules.dtype).onnx
        self._old_ir = model.ir_version < FIRST_IR_WITHOUT_WEIGHT_INPUTS
        self._stored = {
            name for name in graph.initializers if self._old_ir or name not in graph.inputs
        } | {n.outputs[0] for n in graph.nodes if n.is_op("Constant") and n.outputs}
        self._fixed = self._public_types()
        self._wants = self._wanted_types()
        self._names: dict[tuple[str, bool], str] = {}
        self._nodes: list[NodeProto] = []
        self._tensors: list[Tensor] = []
        self._low_names: set[str] = set()

    def write(self) -> ModelParts:
        """All parts."""
        for value in self._graph.proto.input:
            if value.name not in self._stored and self._rules.is_float(value.name):
                self._define(value.name, low=self._fixed[value.name])
        for tensor in self._graph.proto.initializer:
            self._store_initializer(tensor)
        for node in self._graph.nodes:
            if node.is_op("Constant"):
                self._store_constant(node)
            else:
                self._convert(node)
        return ModelParts(
            head=self._head(),
            graph=self._new_graph(),
            nodes=tuple(self._nodes),
            tensors=tuple(self._tensors),
            folder=self._model.path.parent,
        )

    def _public_types(self) -> dict[str, bool]:
        """Float tensors whose own name must have one type -> whether that is the target type."""
        names = [v.name for v in (*self._graph.proto.input, *self._graph.proto.output)]
        fixed = {n: self._match_io for n in names if self._rules.is_float(n)}
        for node in self._graph.nodes:
            captured = self._graph.subgraphs and any(g.owner is node for g in self._graph.subgraphs)
            if captured:
                # Subgraphs are left as they are, and read these by name.
                fixed.update(dict.fromkeys(self._captured_by(node), False))
        return fixed

    def _captured_by(self, node: Node) -> list[str]:
        return [
            name
            for name, readers in self._graph.consumers.items()
            if node in readers and self._rules.is_float(name)
        ]

    def _wanted_types(self) -> dict[str, set[bool]]:
        """Stored tensor -> the types in which it is read; float32 where nothing reads it."""
        wants: dict[str, set[bool]] = {name: set() for name in self._stored}
        for node in self._graph.nodes:
            for slot, name in enumerate(node.inputs):
                if name in wants:
                    wants[name].add(self._rules.wants_low(node, slot, self._low) is True)
        for name, low in self._fixed.items():
            if name in wants:
                wants[name].add(low)
        return wants

    def _define(self, name: str, *, low: bool) -> str:
        """Gives a tensor that is made in one type its name, and notes it."""
        public = self._fixed.get(name, low)
        written = name if public == low else f"{name}_{self._type_name(low)}"
        self._names[name, low] = written
        if low:
            self._low_names.add(written)
        return written

    def _type_name(self, low: bool) -> str:
        return self._rules.dtype if low else "float32"

    def _read(self, name: str, *, low: bool | None) -> str:
        """The name under which a float tensor is read in a type; casts it where it must."""
        known = (name, True) in self._names or (name, False) in self._names
        if not known or not self._rules.is_float(name):
            # What nothing makes is for the checker to refuse.
            return name
        made = (
            low if low is not None and (name, low) in self._names else (name, True) in self._names
        )
        if low is None or made == low:
            return self._names[name, made]
        target = f"{name}_{self._type_name(low)}" if self._fixed.get(name) != low else name
        elem_type = self._elem_type if low else TensorProto.FLOAT
        self._nodes.append(
            helper.make_node(
                "Cast",
                [self._names[name, made]],
                [target],
                name=f"{target}_cast",
                to=elem_type,
            )
        )
        self._names[name, low] = target
        if low:
            self._low_names.add(target)
        return target

    def _convert(self, node: Node) -> None:
        inputs = [
            self._read(name, low=self._rules.wants_low(node, slot, self._low))
            for slot, name in enumerate(node.inputs)
        ]
        if node.is_op("Cast") and self._is_idle(node, inputs[0]):
            self._names[node.outputs[0], node in self._low] = inputs[0]
            return
        made = {
            slot: node in self._low and self._makes_low(node, slot)
            for slot, name in enumerate(node.outputs)
            if self._rules.is_float(name)
        }
        outputs = [
            self._define(name, low=made[slot]) if slot in made else name
            for slot, name in enumerate(node.outputs)
        ]
        self._nodes.append(self._rewritten(node, inputs, outputs))
        for slot, name in enumerate(node.outputs):
            if slot in made and self._fixed.get(name, made[slot]) != made[slot]:
                self._read(name, low=self._fixed[name])

    def _makes_low(self, node: Node, slot: int) -> bool:
        if node.is_op("Cast", "CastLike", "ConstantOfShape"):
            return True
        return self._rules.allows(node, slot, output=True) is True

    def _is_idle(self, cast: Node, source: str) -> bool:
        """Whether a cast gives the type it reads, and its own name is not needed."""
        if cast.outputs[0] in self._fixed:
            return False
        to = self._elem_type if cast in self._low else attributes(cast.proto).get("to")
        return to == self._elem_type and source in self._low_names

    def _rewritten(self, node: Node, inputs: list[str], outputs: list[str]) -> NodeProto:
        retyped = node in self._low and node.is_op("Cast", "ConstantOfShape")
        if not retyped and (tuple(inputs), tuple(outputs)) == (node.inputs, node.outputs):
            return node.proto
        new: NodeProto = without(node.proto, NodeProto, "input", "output")
        new.input.extend(inputs)
        new.output.extend(outputs)
        if retyped:
            self._retype(new)
        return new

    def _retype(self, node: NodeProto) -> None:
        given = {a.name: a for a in node.attribute}
        if node.op_type == "Cast":
            given["to"].i = self._elem_type
            return
        value = numpy_helper.to_array(given["value"].t) if "value" in given else np.zeros(1)
        tensor = numpy_helper.from_array(self._cast(value))
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("value", tensor))

    def _cast(self, values: Array) -> Array:
        """Values in the target type; finite ones stay finite, for only bounds may be beyond it."""
        largest = element_type(self._rules.dtype).largest
        dtype = helper.tensor_dtype_to_np_dtype(self._elem_type)
        bounded = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
        return bounded.astype(dtype)

    def _store_initializer(self, tensor: TensorProto) -> None:
        name = tensor.name
        if name not in self._stored or tensor.data_type != TensorProto.FLOAT:
            self._tensors.append(tensor)
            return
        wants = self._wants[name] or {False}
        if False in wants:
            self._names[name, False] = name
            self._tensors.append(tensor)
        if True in wants:
            written = self._stored_low(name, alone=False not in wants)
            make = partial(self._converted, tensor, self._model.path.parent)
            self._tensors.append(
                NewTensor(
                    name=written,
                    dims=tuple(tensor.dims),
                    elem_type=self._elem_type,
                    make=make,
                    external=tensor.data_location == TensorProto.EXTERNAL,
                )
            )

    def _stored_low(self, name: str, *, alone: bool) -> str:
        written = name if alone else f"{name}_{self._rules.dtype}"
        self._names[name, True] = written
        self._low_names.add(written)
        return written

    def _converted(self, tensor: TensorProto, folder: Path) -> Array:
        return self._cast(read_tensor(tensor, folder))

    def _store_constant(self, node: Node) -> None:
        name = node.outputs[0]
        wants = self._wants[name] or {False}
        if not self._rules.is_float(name) or False in wants:
            self._names[name, False] = name
            self._nodes.append(node.proto)
        if self._rules.is_float(name) and True in wants:
            written = self._stored_low(name, alone=False not in wants)
            label = node.proto.name if written == name else f"{node.label}_{self._rules.dtype}"
            tensor = numpy_helper.from_array(self._cast(self._constant_value(node)))
            new = helper.make_node("Constant", [], [written], name=label, value=tensor)
            self._nodes.append(new)

    def _constant_value(self, node: Node) -> Array:
        given = attributes(node.proto)
        if "value" in given:
            return read_tensor(given["value"], self._model.path.parent)
        return np.asarray(given.get("value_floats", given.get("value_float")), np.float32)

    def _head(self) -> ModelProto:
        head: ModelProto = without(self._model.proto, ModelProto, "graph")
        if self._old_ir:
            head.ir_version = FIRST_IR_WITHOUT_WEIGHT_INPUTS
        return head

    def _new_graph(self) -> GraphProto:
        graph: GraphProto = without(self._graph.proto, GraphProto, "node", "initializer", "input")
        graph.input.extend(
            v
            for v in self._graph.proto.input
            if not (self._old_ir and v.name in self._graph.initializers)
        )
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.name in self._low_names:
                value.type.tensor_type.elem_type = self._elem_type
        return graph
