"""The ONNX parser: reads models with the onnx package; refuses what it does not know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tensorrt import plugin_calls
from tensorrt.enums import DataType, OnnxParserFlag
from tensorrt.logger import Logger
from tensorrt.network import INetworkDefinition, new_tensor
from tensorrt.release import Native, crash_if_told

if TYPE_CHECKING:
    # Loaded where a model is parsed: most processes only look into caches and engines.
    import onnx

_DTYPES = {
    1: DataType.FLOAT,
    2: DataType.UINT8,
    3: DataType.INT8,
    6: DataType.INT32,
    7: DataType.INT64,
    9: DataType.BOOL,
    10: DataType.HALF,
    16: DataType.BF16,
}
"""By `onnx.TensorProto.DataType`."""


class ParserError(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ParserError: No constructor defined!")

    def desc(self) -> str:
        return self._desc

    def node_name(self) -> str:
        return self._node_name

    def node_operator(self) -> str:
        return self._node_operator

    def node(self) -> int:
        return self._position


class OnnxParser(Native):
    def __init__(self, network: INetworkDefinition, logger: Logger) -> None:
        self._network, self._logger, self._errors = network, logger, []
        self._flags = {OnnxParserFlag.NATIVE_INSTANCENORM}

    @property
    def num_errors(self) -> int:
        return len(self._errors)

    def get_error(self, index: int) -> ParserError:
        return self._errors[index]

    def clear_errors(self) -> None:
        self._errors.clear()

    def set_flag(self, flag: OnnxParserFlag) -> None:
        self._flags.add(OnnxParserFlag(flag))

    def clear_flag(self, flag: OnnxParserFlag) -> None:
        self._flags.discard(OnnxParserFlag(flag))

    def get_flag(self, flag: OnnxParserFlag) -> bool:
        return flag in self._flags

    def parse_from_file(self, model: str) -> bool:
        return self.parse(Path(model).read_bytes(), model)

    def parse(self, model: bytes, path: str | None = None) -> bool:
        crash_if_told("parse")
        import onnx

        proto = onnx.load_model_from_string(bytes(model))
        known = {s.name for s in onnx.defs.get_all_schemas()}
        plugins: dict[int, object] = {}
        for position, node in enumerate(proto.graph.node):
            if node.domain in ("", "ai.onnx") and node.op_type in known:
                continue
            # A plugin is preferred to a local function of the same name (since 10.7).
            plugin = plugin_calls.create(node, _attributes(node))
            if plugin is None:
                self._refuse(node, position)
            else:
                plugins[position] = plugin
        if not self._errors:
            _fill(self._network, proto, plugins, self._logger)
        return not self._errors

    def _refuse(self, node: onnx.NodeProto, position: int) -> None:
        error = object.__new__(ParserError)
        error._node_name, error._node_operator, error._position = node.name, node.op_type, position
        error._desc = (
            "Plugin not found, are the plugin name, version, and namespace correct? "
            f"({node.op_type})"
        )
        self._errors.append(error)
        self._logger.log(Logger.ERROR, f"ModelImporter.cpp: {error._desc}")


def _attributes(node: onnx.NodeProto) -> dict[str, object]:
    import onnx

    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}


def _add_plugins(
    network: INetworkDefinition, graph: onnx.GraphProto, plugins: dict[int, object]
) -> None:
    """In the graph's order; what follows a plugin knows the shapes that it gave."""
    network._plugins = {}
    for position, plugin in plugins.items():
        node = graph.node[position]
        dims = [network._dims.get(name, []) for name in node.input]
        types = [DataType[network._dtypes.get(name, "FLOAT")] for name in node.input]
        layer = plugin_calls.add(node, plugin, dims, types)
        for name, made in zip(node.output, layer.dims[len(node.input) :], strict=True):
            network._dims.setdefault(name, made)
        for name, made in zip(node.output, layer.types[len(node.input) :], strict=True):
            network._dtypes.setdefault(name, made.name)
        network._plugins[node.output[0]] = layer


def _fill(
    network: INetworkDefinition,
    proto: onnx.ModelProto,
    plugins: dict[int, object],
    logger: Logger,
) -> None:
    import onnx.shape_inference

    graph = onnx.shape_inference.infer_shapes(proto).graph
    constants = {t.name: list(t.dims) for t in graph.initializer}
    constants |= {o: [] for n in graph.node if n.op_type == "Constant" for o in n.output}
    values = (*graph.input, *graph.value_info, *graph.output)
    network._constants = constants
    network._dims = {v.name: _dims(v) for v in values} | {k: v for k, v in constants.items() if v}
    network._dtypes = {v.name: _dtype(v).name for v in values}
    network._dtypes |= {
        t.name: _DTYPES.get(t.data_type, DataType.FLOAT).name for t in graph.initializer
    }
    _add_plugins(network, graph, plugins)
    network._nodes = [n for n in graph.node if n.op_type != "Constant"]
    for node in network._nodes:
        name = node.name or node.output[0]
        logger.log(Logger.VERBOSE, f"Registering layer: {name} for ONNX node: {name}")
    shapes = {n.input[1] for n in graph.node if n.op_type in ("Reshape", "Expand", "Tile")}
    network._inputs = [
        new_tensor(v.name, _dtype(v), tuple(_dims(v)), v.name in shapes)
        for v in graph.input
        if v.name not in constants
    ]
    network._outputs = [new_tensor(v.name, _dtype(v), tuple(_dims(v)), False) for v in graph.output]


def _dims(value: onnx.ValueInfoProto) -> list[int]:
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else -1 for d in dims]


def _dtype(value: onnx.ValueInfoProto) -> DataType:
    return _DTYPES.get(value.type.tensor_type.elem_type, DataType.FLOAT)
