"""What the adapters use of TensorRT's bindings, read from their source.

A convention makes it possible: a variable of one of these names holds an object of that class, and
a parameter without a type has one of these names.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from trtplug import backends

RECEIVERS = {
    "builder": "Builder",
    "cache": "ITimingCache",
    "config": "IBuilderConfig",
    "context": "IExecutionContext",
    "dtype": "DataType",
    "engine": "ICudaEngine",
    "entry": "TimingCacheValue",
    "error": "ParserError",
    "inspector": "EngineInspector",
    "key": "TimingCacheKey",
    "logger": "Logger",
    "network": "INetworkDefinition",
    "parser": "OnnxParser",
    "profile": "IOptimizationProfile",
    "registry": "IPluginRegistry",
    "runtime": "Runtime",
    "tensor": "ITensor",
    "trt": "",
}
"""Variable -> class; the module itself is `trt`."""

SHARED = ("build_log", "network")
"""What TensorRT-RTX runs too, for real."""
PLUGINS = ("trt/plugins",)
ADAPTERS = ("trt/child_build", "trt/child_cache", "trt/config", "trt/child_run", *PLUGINS, *SHARED)

_OURS = {"log", "request", "options", "layer"}
"""Parameters without a type, or with `Any`, that are no objects of TensorRT's."""


@dataclass(frozen=True, slots=True)
class Use:
    """One place where a name of the bindings is used."""

    name: str
    where: str
    stored: bool
    call: tuple[int, tuple[str, ...]] | None
    """Positional arguments, and names of the others; None where it is not called."""


def uses_of(source: str, file: str = "?") -> list[Use]:
    """All of them, in one module."""
    tree = ast.parse(source)
    calls = {id(n.func): n for n in ast.walk(tree) if isinstance(n, ast.Call)}
    inner = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    found = []
    for node in ast.walk(tree):
        name = _name(node)
        # Of `trt.BuilderFlag.TF32` only the whole is a use.
        if name is None or (id(node) in inner and name in _ENUMS):
            continue
        call = calls.get(id(node))
        arguments = (
            None if call is None else (len(call.args), tuple(k.arg or "**" for k in call.keywords))
        )
        stored = isinstance(node.ctx, ast.Store)  # type: ignore[attr-defined]
        found.append(Use(name, f"{file}:{node.lineno}", stored, arguments))  # type: ignore[attr-defined]
    return found


_ENUMS = {
    "BuilderFlag",
    "LayerInformationFormat",
    "Logger",
    "MemoryPoolType",
    "NetworkDefinitionCreationFlag",
    "ProfilingVerbosity",
    "TensorIOMode",
    "TimingCacheKey",
}


def _name(node: ast.AST) -> str | None:
    """`IBuilderConfig.set_flag` for `config.set_flag`."""
    # Every release has `__version__`: `tests/bindings/probe.py` reads it from each.
    if not isinstance(node, ast.Attribute) or node.attr == "__version__":
        return None
    value, names = node.value, [node.attr]
    while isinstance(value, ast.Attribute):
        names.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name):
        return None
    cls = RECEIVERS.get(value.id)
    if cls is None:
        # `log.logger` and `self.logger` hold a logger, whoever holds them.
        if len(names) == 2 and names[1] in RECEIVERS and names[1] != "error":
            return f"{RECEIVERS[names[1]]}.{names[0]}".lstrip(".")
        return None
    parts = ([cls] if cls else []) + names[::-1]
    return ".".join(parts[:2])


def untyped_parameters(source: str) -> set[str]:
    """Names of parameters that are `Any`."""
    return {
        a.arg
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.FunctionDef)
        for a in (*n.args.args, *n.args.kwonlyargs)
        if isinstance(a.annotation, ast.Name) and a.annotation.id == "Any"
    } - _OURS


def adapter_source(name: str) -> str:
    return (Path(backends.__file__).parent / f"{name}.py").read_text(encoding="utf-8")


def enum_lookups(source: str) -> set[str]:
    """Enums whose values are asked for by name: `getattr(trt.OnnxParserFlag, name)`."""
    return {
        n.args[0].attr
        for n in ast.walk(ast.parse(source))
        if isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id == "getattr"
        and isinstance(n.args[0], ast.Attribute)
        and isinstance(n.args[0].value, ast.Name)
        and n.args[0].value.id == "trt"
    }
