"""Applies the options to TensorRT's builder configuration, by the names in their rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trtplug.backends.options import given_options
from trtplug.backends.trt.options import needs_of, plain_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtplug.backends.options import Option, TrtOptions


def lacking(trt: Any, options: TrtOptions) -> list[str]:
    """What the loaded bindings do not have, regardless of their version; in words."""
    found = []
    for need in needs_of(options):
        first, _, member = need.name.partition(".")
        if not hasattr(getattr(trt, first, None), member):
            found.append(f"{need.flag}: the installed TensorRT has no {need.name}")
    return found


def creation_flags(trt: Any, *, ahead_of_time: bool) -> int:
    """Flags of a network; `ahead_of_time` where it has ahead-of-time plugins."""
    flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    if ahead_of_time:
        flags |= 1 << int(trt.NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS)
    return flags


def load_plugins(registry: Any, options: TrtOptions) -> list[str]:
    """Loads plugin libraries; problems, in words."""
    return [
        f"--plugin-library {library.path}: TensorRT could not load it"
        for library in options.plugin_libraries
        if registry.load_library(library.path) is None
    ]


def set_parser_flags(trt: Any, parser: Any, options: TrtOptions) -> None:
    """Sets and clears the named flags."""
    for value in options.parser_flags:
        flag = getattr(trt.OnnxParserFlag, plain_name(value))
        if value.startswith("-"):
            parser.clear_flag(flag)
        else:
            parser.set_flag(flag)


def set_trt_options(trt: Any, config: Any, options: TrtOptions) -> list[str]:
    """Sets everything that was given; problems, in words."""
    if found := lacking(trt, options):
        return found
    # Only with an editable cache does the builder log its candidate tables.
    config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    problems: list[str] = []
    for row, value in given_options(options):
        problems += _apply(trt, config, row, value)
    return problems


def _apply(trt: Any, config: Any, row: Option, value: object) -> list[str]:
    """Sets one option as its row says."""
    name = row.sets or row.sets_by_value.get(str(value), "")
    if name in _SPECIAL:
        return _SPECIAL[name](trt, config, value)
    owner, _, member = name.partition(".")
    if owner == "BuilderFlag":
        config.set_flag(_member(trt, name))
    elif owner == "MemoryPoolType":
        config.set_memory_pool_limit(_member(trt, name), value)
    elif owner == "IBuilderConfig":
        level = _member(trt, f"{row.enum}.{plain_name(str(value))}") if row.enum else value
        setattr(config, member, level)
    # Plugin libraries and parser flags are set on the registry and the parser.
    return []


def _member(trt: Any, name: str) -> object:
    """A value of an enum: numbers change between releases, names do not."""
    enum, _, member = name.partition(".")
    return getattr(getattr(trt, enum), member)


def set_strict_cache(trt: Any, config: Any) -> list[str]:
    """Makes a tactic that the timing cache lacks an error; problems, in words."""
    flag = getattr(trt.BuilderFlag, "ERROR_ON_TIMING_CACHE_MISS", None)
    if flag is None:
        return ["--locked: the installed TensorRT has no ERROR_ON_TIMING_CACHE_MISS"]
    config.set_flag(flag)
    return []


def _set_tactic_sources(trt: Any, config: Any, values: tuple[str, ...]) -> list[str]:
    mask = int(config.get_tactic_sources())
    for value in values:
        bit = 1 << int(getattr(trt.TacticSource, plain_name(value)))
        mask = mask & ~bit if value.startswith("-") else mask | bit
    if not config.set_tactic_sources(mask):
        return [f"--tactic-source: TensorRT refused the mask {mask:#x} of sources"]
    return []


def _set_previews(trt: Any, config: Any, values: tuple[str, ...]) -> list[str]:
    for value in values:
        feature = getattr(trt.PreviewFeature, plain_name(value))
        config.set_preview_feature(feature, not value.startswith("-"))
    return []


def _set_builder_flags(trt: Any, config: Any, values: tuple[str, ...]) -> list[str]:
    for value in values:
        config.set_flag(getattr(trt.BuilderFlag, plain_name(value)))
    return []


def _set_route(trt: Any, config: Any, route: str) -> list[str]:  # noqa: ARG001
    """A build route such as `-a=on -b=2`; the builder ignores one that it does not have."""
    known = config.all_build_routes
    if not known:
        return ["--build-route: this TensorRT has no build routes on this system"]
    config.build_route = route
    if config.build_route == route:
        return []
    names = ", ".join(_route_names(known))
    return [f"--build-route {route!r}: TensorRT rejected it; it has {names or known}"]


def _route_names(known: str) -> list[str]:
    try:
        entries = json.loads(known)["tuner_options"]
        return [str(entry["option"]) for entry in entries]
    except (ValueError, KeyError, TypeError):
        return []


_SPECIAL: Mapping[str, Callable[[Any, Any, Any], list[str]]] = {
    "IBuilderConfig.build_route": _set_route,
    "IBuilderConfig.set_flag": _set_builder_flags,
    "IBuilderConfig.set_preview_feature": _set_previews,
    "IBuilderConfig.set_tactic_sources": _set_tactic_sources,
}
"""What an option sets -> how, where that is no plain property, flag or memory pool."""
