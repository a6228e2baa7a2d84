"""What plugins are made of: interfaces to subclass, tensors described, symbolic dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt.enums import (
    DataType,
    DimensionOperation,
    PluginCapabilityType,
    PluginFieldType,
    TensorFormat,
    TensorRTPhase,
)
from tensorrt.release import RELEASE, Native

if TYPE_CHECKING:
    import numpy as np


class _Interface(Native):
    """Subclassed in Python: attributes are the subclass's own."""

    def __init__(self) -> None:
        pass

    def __setattr__(self, name: str, given: object) -> None:
        object.__setattr__(self, name, given)


class IPluginV3(_Interface):
    def get_capability_interface(self, type: PluginCapabilityType) -> object:
        raise NotImplementedError

    def clone(self) -> IPluginV3:
        raise NotImplementedError


class IPluginV3OneCore(_Interface):
    plugin_name = ""
    plugin_version = ""
    plugin_namespace = ""


class IPluginV3OneBuild(_Interface):
    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    num_outputs = 0
    format_combination_limit = 100
    metadata_string = None
    timing_cache_id = None

    def get_output_data_types(self, input_types: list[DataType]) -> list[DataType]:
        raise NotImplementedError

    def get_output_shapes(
        self, inputs: list[DimsExprs], shape_inputs: list[DimsExprs], expr_builder: IExprBuilder
    ) -> list[DimsExprs]:
        raise NotImplementedError

    def supports_format_combination(
        self, pos: int, in_out: list[DynamicPluginTensorDesc], num_inputs: int
    ) -> bool:
        raise NotImplementedError

    # `inp` is `in` in the bindings, which cannot be written in Python.
    def configure_plugin(
        self, inp: list[DynamicPluginTensorDesc], out: list[DynamicPluginTensorDesc]
    ) -> None:
        pass

    def get_workspace_size(
        self, inp: list[DynamicPluginTensorDesc], out: list[DynamicPluginTensorDesc]
    ) -> int:
        return 0

    def get_valid_tactics(self) -> list[int]:
        return []


class IPluginV3OneRuntime(_Interface):
    def set_tactic(self, tactic: int) -> None:
        pass

    def on_shape_change(self, inp: list[PluginTensorDesc], out: list[PluginTensorDesc]) -> None:
        pass

    def attach_to_context(self, resource_context: object) -> object:
        raise NotImplementedError

    def enqueue(
        self,
        input_desc: list[PluginTensorDesc],
        output_desc: list[PluginTensorDesc],
        inputs: list[int],
        outputs: list[int],
        workspace: int,
        stream: int,
    ) -> None:
        raise NotImplementedError

    def get_fields_to_serialize(self) -> PluginFieldCollection:
        raise NotImplementedError


class IPluginCreatorV3One(_Interface):
    name = ""
    plugin_version = ""
    plugin_namespace = ""
    field_names = None

    def create_plugin(
        self, name: str, field_collection: PluginFieldCollection, phase: TensorRTPhase
    ) -> IPluginV3:
        raise NotImplementedError


_FIELD_TYPES = {
    PluginFieldType.FLOAT16: "float16",
    PluginFieldType.FLOAT32: "float32",
    PluginFieldType.FLOAT64: "float64",
    PluginFieldType.INT16: "int16",
    PluginFieldType.INT32: "int32",
    PluginFieldType.INT64: "int64",
}
"""All others are read as bytes."""


class PluginField(Native):
    """Name, type, and the memory of any buffer, read as an array of the type."""

    type = PluginFieldType.UNKNOWN
    name = ""

    def __init__(
        self, name: str, data: object = None, type: PluginFieldType = PluginFieldType.UNKNOWN
    ) -> None:
        self.name, self.type = name, type
        self._data = b"" if data is None else memoryview(data).tobytes()

    @property
    def data(self) -> np.ndarray:
        import numpy as np  # Most processes that load this package need no arrays.

        read = np.frombuffer(self._data, _FIELD_TYPES.get(self.type, "int8"))
        # Seen in the real bindings of 10.9 and 10.13: their strides are 0 under NumPy 2.
        misread = RELEASE < (10, 16) and int(np.__version__.partition(".")[0]) >= 2
        return np.repeat(read[:1], len(read)) if misread else read


class PluginFieldCollection(list):
    pass


class Dims(list):
    MAX_DIMS = 8


class PluginTensorDesc(Native):
    dims = ()
    format = TensorFormat.LINEAR
    type = DataType.FLOAT
    scale = 1.0

    def __init__(self) -> None:
        pass


class DynamicPluginTensorDesc(Native):
    desc = None
    min = ()
    opt = ()
    max = ()

    def __init__(self) -> None:
        pass


class IDimensionExpr(Native):
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError("tensorrt.IDimensionExpr: No constructor defined!")

    def is_constant(self) -> bool:
        return self._value is not None

    def get_constant_value(self) -> int:
        return -(2**31) if self._value is None else self._value


def dimension(value: int | None) -> IDimensionExpr:
    """A size; None for one that is not known at build."""
    made = object.__new__(IDimensionExpr)
    made._value = value
    return made


class DimsExprs(list):
    """Made of expressions, or of a number of places for them."""

    def __init__(self, arg0: object = ()) -> None:
        super().__init__([None] * arg0 if isinstance(arg0, int) else arg0)


_OPERATIONS = {
    DimensionOperation.SUM: lambda a, b: a + b,
    DimensionOperation.PROD: lambda a, b: a * b,
    DimensionOperation.MAX: max,
    DimensionOperation.MIN: min,
    DimensionOperation.SUB: lambda a, b: a - b,
    DimensionOperation.FLOOR_DIV: lambda a, b: a // b,
    DimensionOperation.CEIL_DIV: lambda a, b: -(-a // b),
}


class IExprBuilder(Native):
    def __init__(self) -> None:
        pass

    def constant(self, arg0: int) -> IDimensionExpr:
        return dimension(arg0)

    def operation(
        self, arg0: DimensionOperation, arg1: IDimensionExpr, arg2: IDimensionExpr
    ) -> IDimensionExpr:
        if not (arg1.is_constant() and arg2.is_constant()):
            return dimension(None)
        return dimension(_OPERATIONS[arg0](arg1._value, arg2._value))
