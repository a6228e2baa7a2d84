"""The network: as a parser fills it, or layer by layer through its API (plugins and constants)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt import plugin_calls
from tensorrt.enums import DataType, QuickPluginCreationRequest
from tensorrt.release import Native

if TYPE_CHECKING:
    import numpy as np

_TYPES = {"float32": DataType.FLOAT, "float16": DataType.HALF, "int32": DataType.INT32}
"""NumPy's types of weights -> TensorRT's."""


class ITensor(Native):
    name = ""
    shape = ()
    dtype = DataType.FLOAT
    is_shape_tensor = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ITensor: No constructor defined!")


def new_tensor(name: str, dtype: DataType, shape: tuple[int, ...], is_shape: bool) -> ITensor:
    tensor = object.__new__(ITensor)
    tensor.name, tensor.dtype, tensor.shape, tensor.is_shape_tensor = name, dtype, shape, is_shape
    return tensor


class INetworkDefinition(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.INetworkDefinition: No constructor defined!")

    @property
    def num_inputs(self) -> int:
        return len(self._inputs)

    @property
    def num_outputs(self) -> int:
        return len(self._outputs)

    @property
    def num_layers(self) -> int:
        return len(self._nodes)

    def get_input(self, index: int) -> ITensor:
        return self._inputs[index]

    def get_output(self, index: int) -> ITensor:
        return self._outputs[index]

    def add_input(self, name: str, dtype: DataType, shape: tuple[int, ...]) -> ITensor:
        tensor = new_tensor(name, dtype, tuple(shape), False)
        self._inputs.append(tensor)
        return tensor

    def add_constant(self, shape: tuple[int, ...], weights: np.ndarray) -> IConstantLayer:
        layer = _new_layer(IConstantLayer, self, _TYPES[weights.dtype.name], list(shape))
        self._constants_added.append(layer.get_output(0))
        return layer

    def add_plugin(self, func: object, aot: bool | None = None) -> IPluginV3Layer:
        """As the bindings do it: `aot` is strict, and without it the network's flags say."""
        kinds = QuickPluginCreationRequest
        request = kinds.UNKNOWN if aot is None else kinds.STRICT_AOT if aot else kinds.STRICT_JIT
        return self.add_plugin_v3(*func(request))

    def add_plugin_v3(
        self, inputs: list[ITensor], shape_inputs: list[ITensor], plugin: object
    ) -> IPluginV3Layer:
        import onnx

        dims, types = [list(t.shape) for t in inputs], [t.dtype for t in inputs]
        node = onnx.NodeProto(op_type="plugin", output=["?"])
        node.input.extend("?" for _ in inputs)
        made = plugin_calls.add(node, plugin, dims, types)
        layer = _new_layer(IPluginV3Layer, self, made.types[-1], made.dims[-1])
        layer._made, layer._inputs = made, list(inputs)
        self._plugins_added.append(layer)
        return layer

    def mark_output(self, tensor: ITensor) -> None:
        self._outputs.append(tensor)

    def _finish(self) -> None:
        """Tensors have their names only now: nodes are written as the parser would leave them."""
        for tensor in self._constants_added:
            self._constants[tensor.name] = list(tensor.shape)
        for layer in self._plugins_added:
            tensors = [*layer._inputs, layer.get_output(0)]
            names = [t.name for t in tensors]
            node = layer._made.node
            node.name, node.input[:], node.output[:] = layer.name, names[:-1], names[-1:]
            node.op_type = layer._made.core.plugin_name
            layer._made.name = layer.name
            self._nodes.append(node)
            self._plugins[names[-1]] = layer._made
            self._dims |= {t.name: list(t.shape) for t in tensors}
            self._dtypes |= {t.name: t.dtype.name for t in tensors}
        self._constants_added, self._plugins_added = [], []


class ILayer(Native):
    name = ""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.ILayer: No constructor defined!")

    @property
    def num_outputs(self) -> int:
        return 1

    def get_output(self, index: int) -> ITensor:
        return self._output


class IConstantLayer(ILayer):
    pass


class IPluginV3Layer(ILayer):
    pass


def _new_layer(kind: type, network: INetworkDefinition, dtype: DataType, dims: list) -> ILayer:
    layer = object.__new__(kind)
    number = len(network._constants_added) + len(network._plugins_added)
    layer.name = f"(Unnamed Layer* {number})"
    layer._output = new_tensor(f"{layer.name}_output", dtype, tuple(dims), False)
    return layer


def empty_network(flags: int) -> INetworkDefinition:
    """As `Builder.create_network`."""
    network = object.__new__(INetworkDefinition)
    network._flags = flags
    network._inputs, network._outputs, network._nodes = [], [], []
    network._dims, network._dtypes, network._constants, network._plugins = {}, {}, {}, {}
    network._constants_added, network._plugins_added = [], []
    return network
