"""What each option of enterprise TensorRT needs of the installed release, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.backends.trt.capabilities import advice_for_gone, find_capability, names_below
from trtplug.errors import OptionUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.backends.options import TrtOptions


FREE_FLAGS = (
    "DEBUG",
    "DIRECT_IO",
    "DISABLE_COMPILATION_CACHE",
    "DISTRIBUTIVE_INDEPENDENCE",
    "MONITOR_MEMORY",
    "STRICT_NANS",
)
"""What `--builder-flag` sets; all others have options of their own, or are trtplug's business."""

_OWN_OPTION = {
    "EDITABLE_TIMING_CACHE": "trtplug sets it itself",
    "ERROR_ON_TIMING_CACHE_MISS": "trtplug sets it itself",
    "EXCLUDE_LEAN_RUNTIME": "--exclude-lean-runtime",
    "REFIT": "--refit all",
    "REFIT_IDENTICAL": "--refit identical",
    "SPARSE_WEIGHTS": "--sparsity",
    "STRIP_PLAN": "--strip",
    "TF32": "--tf32",
    "VERSION_COMPATIBLE": "--version-compatible",
    "WEIGHT_STREAMING": "--weight-streaming",
}
"""Builder flag -> its option."""

SIMPLE = {
    "avg_timing": ("--avg-timing", "IBuilderConfig.avg_timing_iterations"),
    "max_tactics": ("--max-tactics", "IBuilderConfig.max_num_tactics"),
    "tiling": ("--tiling", "IBuilderConfig.tiling_optimization_level"),
    "l2_limit_bytes": ("--l2-limit", "IBuilderConfig.l2_limit_for_tiling"),
    "aux_streams": ("--aux-streams", "IBuilderConfig.max_aux_streams"),
    "tactic_shared_memory_bytes": (
        "--tactic-shared-memory",
        "MemoryPoolType.TACTIC_SHARED_MEMORY",
    ),
    "sparsity": ("--sparsity", "BuilderFlag.SPARSE_WEIGHTS"),
    "version_compatible": ("--version-compatible", "BuilderFlag.VERSION_COMPATIBLE"),
    "exclude_lean_runtime": ("--exclude-lean-runtime", "BuilderFlag.EXCLUDE_LEAN_RUNTIME"),
    "strip": ("--strip", "BuilderFlag.STRIP_PLAN"),
    "build_route": ("--build-route", "IBuilderConfig.build_route"),
    "plugin_libraries": ("--plugin-library", "IPluginRegistry.load_library"),
}
"""Option whose value matters not -> flag, and the name it needs."""

NAMED = {
    "tiling": ("--tiling", "TilingOptimizationLevel"),
    "hardware_compatibility": ("--hardware-compatibility", "HardwareCompatibilityLevel"),
    "tactic_sources": ("--tactic-source", "TacticSource"),
    "preview": ("--preview", "PreviewFeature"),
    "parser_flags": ("--parser-flag", "OnnxParserFlag"),
    "builder_flags": ("--builder-flag", "BuilderFlag"),
}
"""Option whose values are names in an enum -> flag, and the enum."""

_NO_ENUM = "refit"
_REFIT = {"all": "BuilderFlag.REFIT", "identical": "BuilderFlag.REFIT_IDENTICAL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A name of the bindings that an option needs."""

    flag: str
    """As on the command line, with its value where that decides."""
    name: str


def needs_of(options: TrtOptions) -> Iterator[Need]:
    """What the options given need, in their order."""
    changed = options.changed()
    for key, (flag, name) in SIMPLE.items():
        if key in changed:
            yield Need(flag=flag, name=name)
    for key, (flag, enum) in NAMED.items():
        given = changed.get(key, ())
        for value in (given,) if isinstance(given, str) else given:
            yield Need(flag=f"{flag} {value}", name=f"{enum}.{plain_name(value)}")
    if options.refit is not None:
        # No flag of the builder: another one's name is no word of `--refit`.
        name = _REFIT.get(options.refit, f"{_NO_ENUM}.{options.refit}")
        yield Need(flag=f"--refit {options.refit}", name=name)


def plain_name(value: str) -> str:
    """`+jit_convolutions` or `JIT_CONVOLUTIONS` as `JIT_CONVOLUTIONS`."""
    return value.lstrip("+-").upper()


def check_trt_options(options: TrtOptions, version: str) -> None:
    """Refuses what a release does not have.

    Raises:
        OptionUnsupportedError: the first option, or name given to one, that it lacks.
    """
    for need in needs_of(options):
        _check(need, version)


def _check(need: Need, version: str) -> None:
    enum, _, value = need.name.partition(".")
    row = find_capability(need.name)
    taken = enum == "BuilderFlag" and need.flag.startswith("--builder-flag")
    if row is not None and row.in_version(version):
        if taken and value not in FREE_FLAGS:
            own = _OWN_OPTION.get(value) or advice_for_gone(need.name)
            raise _refusal(need.flag, version, advice=f"use instead: {own}")
        return
    if enum == _NO_ENUM:
        raise _refusal(need.flag, version, advice=f"it has {', '.join(_REFIT)}")
    if row is None:
        known = FREE_FLAGS if taken else names_below(enum, version)
        known = tuple(k for k in known if _has(f"{enum}.{k}", version))
        advice = f"it has {', '.join(k.lower() for k in known)}" if known else ""
        raise _refusal(need.flag, version, advice=advice)
    if row.gone_in(version):
        advice = advice_for_gone(need.name) or "leave it out"
        raise _refusal(need.flag, version, removed=row.removed, advice=advice)
    raise _refusal(need.flag, version, since=row.since, advice=f"install TensorRT {row.since}")


def _refusal(
    flag: str,
    version: str,
    *,
    since: str | None = None,
    removed: str | None = None,
    advice: str = "",
) -> OptionUnsupportedError:
    return OptionUnsupportedError(
        option=flag, backend="trt", version=version, since=since, removed=removed, advice=advice
    )


def _has(name: str, version: str) -> bool:
    row = find_capability(name)
    return row is not None and row.in_version(version)
