"""What the given options need of the installed TensorRT, by name in its bindings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from trtplug.backends.options import given_options
from trtplug.backends.trt.capabilities import find_capability, names_in, replacement_of
from trtplug.errors import OptionUnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.backends.options import Option, TrtOptions


FREE_FLAGS = (
    "DEBUG",
    "DIRECT_IO",
    "DISABLE_COMPILATION_CACHE",
    "DISTRIBUTIVE_INDEPENDENCE",
    "MONITOR_MEMORY",
    "STRICT_NANS",
)
"""What `--builder-flag` sets; all others have options of their own, or trtplug sets them."""

_OWN_OPTION = {
    "EDITABLE_TIMING_CACHE": "nothing, trtplug sets it itself",
    "ERROR_ON_TIMING_CACHE_MISS": "--locked",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A name of the bindings that an option needs."""

    flag: str
    """As on the command line, with its value where that decides."""
    name: str
    """As in the capability table; empty where the option has no such value."""
    choices: tuple[str, ...] = ()
    """Values of the option, where they are not names of an enum."""


def needs_of(options: TrtOptions) -> Iterator[Need]:
    """What the given options need, in the order of the options."""
    for row, value in given_options(options):
        yield from _needs(row, value)


def _needs(row: Option, value: Any) -> Iterator[Need]:  # noqa: ANN401 - of any option
    if row.sets:
        yield Need(flag=row.flag, name=row.sets)
    if row.sets_by_value:
        name = row.sets_by_value.get(value, "")
        yield Need(flag=f"{row.flag} {value}", name=name, choices=tuple(row.sets_by_value))
    if row.enum:
        for each in (value,) if isinstance(value, str) else value:
            yield Need(flag=f"{row.flag} {each}", name=f"{row.enum}.{plain_name(each)}")


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
    row = find_capability(need.name)
    refusal = partial(OptionUnsupportedError, option=need.flag, backend="trt", version=version)
    if row is None:
        known = need.choices or tuple(n.lower() for n in _settable(need.name, version))
        advice = f"choose one of: {', '.join(known)}" if known else ""
        raise refusal(advice=advice)
    if row.removed_in(version):
        advice = replacement_of(need.name) or "leave it out"
        raise refusal(removed=row.removed, advice=advice)
    if not row.in_version(version):
        raise refusal(since=row.since, advice=f"install TensorRT {row.since}")
    flag = need.name.removeprefix("BuilderFlag.")
    if need.flag.startswith("--builder-flag ") and flag not in FREE_FLAGS:
        own = _OWN_OPTION.get(flag) or replacement_of(need.name)
        raise refusal(advice=f"use instead: {own}")


def _settable(name: str, version: str) -> tuple[str, ...]:
    """Values of the enum of a name that a user may set."""
    enum = name.partition(".")[0]
    names = names_in(enum, version)
    return tuple(n for n in names if n in FREE_FLAGS) if enum == "BuilderFlag" else names
