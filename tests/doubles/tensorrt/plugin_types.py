"""What plugins are made of: interfaces to subclass, tensors described, symbolic dimensions."""

from __future__ import annotations

from tensorrt.enums import (
    DataType,
    DimensionOperation,
    PluginCapabilityType,
    PluginFieldType,
    TensorFormat,
    TensorRTPhase,
)
from tensorrt.release import Native


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


class PluginField(Native):
    data = None
    type = PluginFieldType.UNKNOWN
    name = ""

    def __init__(
        self, name: str, data: object = None, type: PluginFieldType = PluginFieldType.UNKNOWN
    ) -> None:
        self.name, self.data, self.type = name, data, type


class PluginFieldCollection(list):
    pass


class PluginTensorDesc(Native):
    dims = ()
    format = TensorFormat.LINEAR
    type = DataType.FLOAT

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
    pass


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
