"""From trtplug's options to calls of TensorRT's builder configuration, asked for by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trtplug.backends.trt.options import needs_of, plain_name

if TYPE_CHECKING:
    from trtplug.backends.options import TrtOptions


def lacking(trt: Any, options: TrtOptions) -> list[str]:
    """What the bindings that were loaded do not have, whatever their version says; in words."""
    found = []
    for need in needs_of(options):
        first, _, member = need.name.partition(".")
        if not hasattr(getattr(trt, first, None), member):
            found.append(f"{need.flag}: the TensorRT installed here has no {need.name}")
    return found


def creation_flags(trt: Any, *, ahead_of_time: bool) -> int:
    """Flags of a network; `ahead_of_time` where it has plugins of that form."""
    flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    if ahead_of_time:
        flags |= 1 << int(trt.NetworkDefinitionCreationFlag.PREFER_AOT_PYTHON_PLUGINS)
    return flags


def load_plugins(registry: Any, options: TrtOptions) -> list[str]:
    """Loads plugin libraries; what could not be loaded, in words."""
    return [
        f"--plugin-library {library.path}: TensorRT could not load it"
        for library in options.plugin_libraries
        if registry.load_library(library.path) is None
    ]


def set_parser_flags(trt: Any, parser: Any, options: TrtOptions) -> None:
    """Sets and clears what was named."""
    for value in options.parser_flags:
        flag = getattr(trt.OnnxParserFlag, plain_name(value))
        if value.startswith("-"):
            parser.clear_flag(flag)
        else:
            parser.set_flag(flag)


def set_trt_options(trt: Any, config: Any, options: TrtOptions) -> list[str]:
    """Sets everything that was given; what could not be set, in words."""
    if found := lacking(trt, options):
        return found
    _set_search(trt, config, options)
    _set_portability(trt, config, options)
    _set_named(trt, config, options)
    # Candidate tables are written to the log for an editable cache only.
    config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    return _set_route(config, options.build_route)


def set_strict_cache(trt: Any, config: Any) -> list[str]:
    """A tactic that the timing cache lacks becomes an error; why that cannot be, in words."""
    flag = getattr(trt.BuilderFlag, "ERROR_ON_TIMING_CACHE_MISS", None)
    if flag is None:
        return ["--locked: the TensorRT installed here has no ERROR_ON_TIMING_CACHE_MISS"]
    config.set_flag(flag)
    return []


def _set_search(trt: Any, config: Any, options: TrtOptions) -> None:
    """How kernels are looked for."""
    if options.avg_timing is not None:
        config.avg_timing_iterations = options.avg_timing
    if options.max_tactics is not None:
        config.max_num_tactics = options.max_tactics
    if options.aux_streams is not None:
        config.max_aux_streams = options.aux_streams
    if options.tiling is not None:
        level = getattr(trt.TilingOptimizationLevel, plain_name(options.tiling))
        config.tiling_optimization_level = level
    if options.l2_limit_bytes is not None:
        config.l2_limit_for_tiling = options.l2_limit_bytes
    if options.tactic_shared_memory_bytes is not None:
        pool = trt.MemoryPoolType.TACTIC_SHARED_MEMORY
        config.set_memory_pool_limit(pool, options.tactic_shared_memory_bytes)
    if options.sparsity:
        config.set_flag(trt.BuilderFlag.SPARSE_WEIGHTS)


def _set_portability(trt: Any, config: Any, options: TrtOptions) -> None:
    """Where an engine may run, and with which weights."""
    if options.version_compatible:
        config.set_flag(trt.BuilderFlag.VERSION_COMPATIBLE)
    if options.exclude_lean_runtime:
        config.set_flag(trt.BuilderFlag.EXCLUDE_LEAN_RUNTIME)
    if options.hardware_compatibility is not None:
        name = plain_name(options.hardware_compatibility)
        config.hardware_compatibility_level = getattr(trt.HardwareCompatibilityLevel, name)
    if options.strip:
        config.set_flag(trt.BuilderFlag.STRIP_PLAN)
    if options.refit == "all":
        config.set_flag(trt.BuilderFlag.REFIT)
    elif options.refit == "identical":
        config.set_flag(trt.BuilderFlag.REFIT_IDENTICAL)


def _set_named(trt: Any, config: Any, options: TrtOptions) -> None:
    """What is given as names of an enum: numbers change between releases, names do not."""
    if options.tactic_sources:
        mask = int(config.get_tactic_sources())
        for value in options.tactic_sources:
            bit = 1 << int(getattr(trt.TacticSource, plain_name(value)))
            mask = mask & ~bit if value.startswith("-") else mask | bit
        config.set_tactic_sources(mask)
    for value in options.preview:
        feature = getattr(trt.PreviewFeature, plain_name(value))
        config.set_preview_feature(feature, not value.startswith("-"))
    for value in options.builder_flags:
        config.set_flag(getattr(trt.BuilderFlag, plain_name(value)))


def _set_route(config: Any, route: str | None) -> list[str]:
    """A build route such as `-a=on -b=2`, held against what this builder offers."""
    if route is None:
        return []
    known = config.all_build_routes
    if not known:
        return ["--build-route: this TensorRT offers no build routes on this system"]
    config.build_route = route
    if config.build_route == route:
        return []
    names = ", ".join(_route_names(known))
    return [f"--build-route {route!r}: TensorRT refused it; it has {names or known}"]


def _route_names(known: str) -> list[str]:
    try:
        entries = json.loads(known)["tuner_options"]
        return [str(entry["option"]) for entry in entries]
    except (ValueError, KeyError, TypeError):
        return []
