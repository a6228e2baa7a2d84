"""Which nodes keep computing in float32 when a model is made float16 or bfloat16, and why.

A rule looks at one node and gives a reason or None. Knows nothing of how the conversion is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto

from trtplug.model.graph import Graph, Node, attributes, subgraphs_of
from trtplug.model.schema import Schemas
from trtplug.settings import matches_any
from trtplug.tensor import element_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtplug.model.constants import Constants

    Array = np.ndarray[Any, np.dtype[Any]]

RANGE_SENSITIVE = {
    **dict.fromkeys(("Softmax", "LogSoftmax"), "sums of exponentials"),
    **dict.fromkeys(("Exp", "Log", "Pow", "Reciprocal"), "results beyond the range of 16 bits"),
    **dict.fromkeys(
        (
            "LayerNormalization", "InstanceNormalization", "GroupNormalization", "LRN",
            "MeanVarianceNormalization", "RMSNormalization", "LpNormalization",
        ),
        "sums of squares",
    ),
    **dict.fromkeys(
        (
            "CumSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
            "ReduceProd", "ReduceSum", "ReduceSumSquare", "GlobalLpPool",
        ),
        "a long sum",
    ),
}  # fmt: skip
"""Operators whose intermediate values need float32's range or digits."""

ANY_TYPE = ("Cast", "CastLike", "Shape", "Size")
"""These read a tensor of whatever type: no cast is needed before them."""

_TYPE_BY_ATTRIBUTE = (
    "Bernoulli", "EyeLike", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike",
)  # fmt: skip

_RECURRENT = ("GRU", "LSTM", "RNN")

_PRODUCTS = ("BatchNormalization", "Conv", "ConvTranspose", "Div", "Gemm", "MatMul", "Mul", "PRelu")
"""A factor that loses its digits spoils the result; a term that does may be small beside it."""

_BOUNDS = ("Clip", "Max", "Min")
"""A constant out of range is no bound at all there, so it may become the largest number."""

_ELEMENTWISE = (
    "Add", "Ceil", "Concat", "Div", "Floor", "Gather", "Max", "Min", "Mul", "Neg", "Reciprocal",
    "Reshape", "Round", "Slice", "Sqrt", "Squeeze", "Sub", "Unsqueeze",
)  # fmt: skip

_INTEGERS = frozenset(
    (
        TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
        TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """A node that keeps computing in float32."""

    node: str
    op_type: str
    reason: str


class Rules:
    """The rules for one graph and one target type."""

    def __init__(
        self,
        graph: Graph,
        constants: Constants,
        dtype: str,
        opset: int,
        keep_fp32: tuple[str, ...],
        dtype_of: Callable[[str], str | None],
    ) -> None:
        """`dtype` is `float16` or `bfloat16`; `dtype_of` tells the type of a tensor."""
        self._graph = graph
        self._constants = constants
        self._element = element_type(dtype)
        self._opset = opset
        self._keep = keep_fp32
        self._dtype_of = dtype_of
        self._schemas = Schemas(opset)
        self._sizes: dict[str, float] = {}

    def islands(self) -> dict[Node, str]:
        """Every node of the graph that stays in float32, with its reason."""
        found = {}
        for node in self._graph.nodes:
            reason = self._reason(node)
            if reason is not None and self.touches_float(node):
                found[node] = reason
        for node in self._graph.nodes:
            if node not in found and self._ends_normalization(node, found):
                found[node] = "it belongs to a normalisation"
        found.update(self._overflowing_folds())
        found.update(self._index_arithmetic())
        return found

    @property
    def dtype(self) -> str:
        """The target type, `float16` or `bfloat16`."""
        return self._element.name

    def is_float(self, name: str) -> bool:
        """Whether a tensor is float32 in the model as it is."""
        if not name:
            return False
        tensor = self._graph.initializers.get(name)
        if tensor is not None:
            return tensor.data_type == TensorProto.FLOAT
        return self._dtype_of(name) == "float"

    def touches_float(self, node: Node) -> bool:
        """Whether a float32 tensor goes in or out."""
        return any(map(self.is_float, (*node.inputs, *node.outputs)))

    def can_change(self, node: Node) -> bool:
        """Whether the target type means anything to a node; constants follow their readers."""
        if node.is_op("Constant") or not self.touches_float(node):
            return False
        return not node.is_op(*ANY_TYPE) or any(map(self.is_float, node.outputs))

    def wants_low(self, node: Node, slot: int, low: frozenset[Node]) -> bool | None:
        """The type in which a node reads a float input; None where either will do."""
        if node.is_op(*ANY_TYPE):
            return None
        return node in low and self.allows(node, slot) is True

    def allows(self, node: Node, slot: int, *, output: bool = False) -> bool | None:
        """Whether the standard lets a slot be of the target type; None where its type is fixed."""
        schema = self._schemas.of(node)
        formal = None if schema is None else _formal(schema, slot, output=output)
        if schema is None or formal is None:
            return False
        wanted = f"tensor({self._element.name})"
        for constraint in schema.type_constraints:
            if constraint.type_param_str == formal.type_str:
                return wanted in constraint.allowed_type_strs
        return None

    def _reason(self, node: Node) -> str | None:
        rules = (
            self._by_user,
            self._by_kind,
            self._by_quantization,
            self._by_schema,
            self._by_constants,
        )
        return next((reason for rule in rules if (reason := rule(node)) is not None), None)

    def _by_user(self, node: Node) -> str | None:
        glob = next((g for g in self._keep if matches_any(node.label, (g,))), None)
        return None if glob is None else f"--keep-fp32 {glob}"

    def _by_kind(self, node: Node) -> str | None:
        if node.domain:
            return f"{node.domain}::{node.op_type} is no standard operator"
        if next(subgraphs_of(node.proto), None) is not None:
            return "it holds subgraphs, which stay as they are"
        if node.op_type in _TYPE_BY_ATTRIBUTE or node.op_type in _RECURRENT:
            return f"{node.op_type} stays as the model has it"
        if node.op_type in RANGE_SENSITIVE:
            return RANGE_SENSITIVE[node.op_type]
        return None

    def _by_quantization(self, node: Node) -> str | None:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"):
            return "quantised chains are left alone"
        makers = [self._graph.producer.get(n) for n in node.inputs if n]
        readers = [r for n in node.outputs for r in self._graph.consumers.get(n, ())]
        fed = any(m is not None and m.is_op("DequantizeLinear") for m in makers)
        if fed or any(r.is_op("QuantizeLinear", "DynamicQuantizeLinear") for r in readers):
            return "quantised chains are left alone"
        return None

    def _by_schema(self, node: Node) -> str | None:
        if node.is_op("Cast", "CastLike", "Constant", "ConstantOfShape"):
            return None
        slots = [(i, n, False) for i, n in enumerate(node.inputs)]
        slots += [(i, n, True) for i, n in enumerate(node.outputs)]
        for slot, name, output in slots:
            if self.is_float(name) and self.allows(node, slot, output=output) is False:
                return f"{node.op_type} of opset {self._opset} knows no {self._element.name}"
        return None

    def _by_constants(self, node: Node) -> str | None:
        for slot, name in enumerate(node.inputs):
            largest = self._largest(name)
            if largest is None:
                continue
            if largest > self._element.largest and not node.is_op(*_BOUNDS):
                return f"{name!r} holds {largest:g}, beyond {self._element.largest:g}"
            factor = node.is_op(*_PRODUCTS) and slot < 2
            if factor and 0 < largest < self._element.smallest_normal:
                return f"{name!r} holds nothing above {largest:g}: it would lose its digits"
        return None

    def _ends_normalization(self, node: Node, found: Mapping[Node, str]) -> bool:
        """A small constant added to an island's result, and the root of that: epsilon matters."""
        if not node.is_op("Add", "Sqrt", "Max"):
            return False
        makers = [self._graph.producer.get(n) for n in node.inputs]
        if not any(m in found for m in makers if m is not None):
            return False
        sizes = [s for s in map(self._largest, node.inputs) if s is not None]
        return node.is_op("Sqrt") or any(0 < s < self._element.smallest_normal for s in sizes)

    def _largest(self, name: str) -> float | None:
        """Largest magnitude of a stored float32 tensor; 0 where it holds NaN or infinity."""
        if name in self._sizes:
            return self._sizes[name]
        maker = self._graph.producer.get(name)
        if not name or (maker is not None and not maker.is_op("Constant", "Identity")):
            return None
        constant = self._constants.get(name)
        if constant is None or constant.elem_type != TensorProto.FLOAT or not constant.elements:
            return None
        values = constant.read()
        largest = max(abs(float(values.min())), abs(float(values.max())))
        self._sizes[name] = largest if math.isfinite(largest) else 0.0
        return self._sizes[name]

    def _overflowing_folds(self) -> Mapping[Node, str]:
        """Convolutions whose BatchNormalization, folded in by the builder, leaves the range."""
        found = {}
        for node in self._graph.nodes:
            conv = self._graph.producer.get(node.input(0)) if node.inputs else None
            if conv is None or not (node.is_op("BatchNormalization") and conv.is_op("Conv")):
                continue
            parameters = [self._constants.get(node.input(i)) for i in (1, 4)]
            weight = self._largest(conv.input(1))
            if weight is None or any(p is None for p in parameters):
                continue
            scale, variance = (p.read().astype(np.float64) for p in parameters if p is not None)
            epsilon = attributes(node.proto).get("epsilon", 1e-5)
            with np.errstate(divide="ignore", invalid="ignore"):
                factor = float(np.abs(scale / np.sqrt(variance + epsilon)).max(initial=0.0))
            if factor * weight > self._element.largest:
                reason = f"weights folded with {node.label!r} reach {factor * weight:g}"
                found.update({conv: reason, node: reason})
        return found

    def _index_arithmetic(self) -> Mapping[Node, str]:
        """Float arithmetic that ends in whole numbers: sizes and indices need all their digits."""
        found: dict[Node, str] = {}
        waiting = [n for n in self._graph.nodes if n.is_op("Cast") and _to_integer(n)]
        while waiting:
            node = waiting.pop()
            for name in node.inputs:
                maker = self._graph.producer.get(name)
                if maker is None or maker in found or not self.is_float(name):
                    continue
                if maker.is_op(*_ELEMENTWISE, "Cast"):
                    found[maker] = "it computes whole numbers"
                    waiting.append(maker)
        return found


def _formal(
    schema: onnx.defs.OpSchema, slot: int, *, output: bool
) -> onnx.defs.OpSchema.FormalParameter | None:
    formals = schema.outputs if output else schema.inputs
    if slot < len(formals):
        return formals[slot]
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return formals[-1] if formals and formals[-1].option == variadic else None


def _to_integer(cast: Node) -> bool:
    return attributes(cast.proto).get("to") in _INTEGERS
