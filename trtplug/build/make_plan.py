"""Makes a plan from plain values: targets resolved, keys declared. It only reads the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trtplug
from trtplug.errors import UnknownTargetError, UsageError
from trtplug.plan import SCHEMA, Plan, PlannedTarget
from trtplug.profile import find_profile, nearest_names, profiles_digest, profiles_of
from trtplug.store import Store, key_of
from trtplug.target import Sm, Target, parse_sm

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.profile import GpuProfile


ENTRY_LAYOUT = 3
"""Raised when the files in a store entry, or their meaning, change within a tool version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """The backend as a plan sees it."""

    name: str
    version: str
    sms: tuple[Sm, ...]
    place: str = ""
    """What an engine depends on beside its SM, such as GPU and driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked for."""

    model_file: str
    model_sha256: str
    targets: tuple[str, ...]
    shapes: tuple[str, ...]
    precision: str
    flags: Mapping[str, str]
    timing_cache: str = "use"
    """`fresh` and `require` must not be given an engine that was built otherwise."""
    repeat: int
    fresh: bool
    """Build even where the store has the engine."""
    out: str
    kernels: str = ""
    """What our kernels come from: digest of sources and compiler; empty where none can be built."""


def make_plan(
    wish: Wish,
    builder: Builder,
    profiles: tuple[GpuProfile, ...],
    store: Store,
    local_sm: Callable[[], Sm],
) -> Plan:
    """The plan for a wish.

    Args:
        wish: what the user asked for.
        builder: the backend that will build.
        profiles: all GPU profiles.
        store: asked whether an engine is there already.
        local_sm: gives the SM of the GPU at hand; called only for the target `local`.

    Raises:
        UnknownTargetError: a target that is neither a profile, an SM, `local` nor `all`.
        UsageError: no target at all.
    """
    if not wish.targets:
        raise UsageError(
            "no target was given",
            "add --target rtx4090, --target sm_89 or --target all; `trtplug targets` lists them",
        )
    asked = resolve_targets(wish.targets, builder, profiles, local_sm)
    digest = profiles_digest(profiles)
    return Plan(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model_file=wish.model_file,
        model_sha256=wish.model_sha256,
        backend=builder.name,
        backend_version=builder.version,
        shapes=wish.shapes,
        precision=wish.precision,
        flags=wish.flags,
        repeat=wish.repeat,
        out=wish.out,
        targets=tuple(
            _planned(sm, names, wish, builder, profiles, digest, store)
            for sm, names in asked.items()
        ),
    )


def resolve_targets(
    names: tuple[str, ...],
    builder: Builder,
    profiles: tuple[GpuProfile, ...],
    local_sm: Callable[[], Sm],
) -> dict[Sm, tuple[str, ...]]:
    """SM -> the profiles of it that were asked for by name; in the order asked."""
    asked: dict[Sm, tuple[str, ...]] = {}
    for name in names:
        found = find_profile(name, profiles)
        sm = parse_sm(name)
        if name.lower() == "all":
            for each in builder.sms:
                asked.setdefault(each, ())
        elif name.lower() == "local":
            asked.setdefault(local_sm(), ())
        elif found is not None:
            asked[found.sm] = tuple(dict.fromkeys((*asked.get(found.sm, ()), found.name)))
        elif sm is not None and (sm in builder.sms or profiles_of(sm, profiles)):
            asked.setdefault(sm, ())
        else:
            raise UnknownTargetError(name=name, nearest=nearest_names(name, profiles))
    return asked


def key_inputs(
    sm: Sm, gpus: tuple[str, ...], wish: Wish, builder: Builder, profiles_sha256: str
) -> dict[str, object]:
    """All that may change an entry; a change of any of them is a miss."""
    return {
        "layout": ENTRY_LAYOUT,
        "tool_version": trtplug.__version__,
        "model_sha256": wish.model_sha256,
        "model_file": wish.model_file,
        "shapes": sorted(wish.shapes),
        "precision": wish.precision,
        "flags": dict(wish.flags),
        "sm": sm.number,
        "gpus": list(gpus),
        "backend": builder.name,
        "backend_version": builder.version,
        "place": builder.place,
        "profiles_sha256": profiles_sha256,
        "timing_cache": wish.timing_cache,
        "kernels": wish.kernels,
    }


def _planned(
    sm: Sm,
    named: tuple[str, ...],
    wish: Wish,
    builder: Builder,
    profiles: tuple[GpuProfile, ...],
    digest: str,
    store: Store,
) -> PlannedTarget:
    gpus = tuple(dict.fromkeys((*named, *(p.name for p in profiles_of(sm, profiles)))))
    version = ".".join(builder.version.split(".")[:2])
    key = key_of(key_inputs(sm, gpus, wish, builder, digest))
    return PlannedTarget(
        target=str(Target(backend=builder.name, version=version, sm=sm)),
        sm=str(sm),
        gpus=gpus,
        supported=sm in builder.sms,
        key=key,
        in_store=not wish.fresh and wish.repeat == 1 and store.find(key) is not None,
    )
