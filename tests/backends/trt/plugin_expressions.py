"""Symbolic dimensions that can be evaluated: a double of `IExprBuilder` for the real plugin code.

A dimension that is not constant hides its value until the expression is read; whoever asks for it
meets what TensorRT gives. No TensorRT is imported here.
"""

from __future__ import annotations

_OPERATIONS = {
    "SUM": lambda a, b: a + b,
    "PROD": lambda a, b: a * b,
    "MAX": max,
    "MIN": min,
    "SUB": lambda a, b: a - b,
    "FLOOR_DIV": lambda a, b: a // b,
    "CEIL_DIV": lambda a, b: -(-a // b),
}


class Expression:
    """As `trt.IDimensionExpr`."""

    def __init__(self, value: int, constant: bool) -> None:
        self.hidden, self._constant = value, constant

    def is_constant(self) -> bool:
        return self._constant

    def get_constant_value(self) -> int:
        return self.hidden if self._constant else -(2**31)


class Builder:
    """As `trt.IExprBuilder`."""

    def constant(self, value: int) -> Expression:
        assert type(value) is int
        return Expression(value, True)

    def operation(self, op, first: Expression, second: Expression) -> Expression:
        name = op if isinstance(op, str) else op.name
        both = first.is_constant() and second.is_constant()
        return Expression(_OPERATIONS[name](first.hidden, second.hidden), both)


class Registry:
    """As `trt.IPluginRegistry`, as far as quick plugins use it."""

    def __init__(self) -> None:
        self.all_creators: list = []

    def get_creator(self, name: str, version: str, namespace: str = ""):
        return next((c for c in self.all_creators if named(c) == (name, version, namespace)), None)

    def register_creator(self, creator, plugin_namespace: str = "") -> bool:
        if self.get_creator(creator.name, creator.plugin_version, plugin_namespace) is not None:
            return False
        self.all_creators.append(creator)
        return True


def named(creator) -> tuple[str, str, str]:
    return creator.name, creator.plugin_version, creator.plugin_namespace
