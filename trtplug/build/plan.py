"""The plan of a build: the one that `--dry-run` shows and that a build carries out.

It reads files and asks the store; it compiles nothing, starts nothing and writes nothing.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.find import choose_backend, local_sm
from trtplug.backends.gpu import find_gpus
from trtplug.build.context import BuildContext
from trtplug.errors import OptionUnsupportedError, TrtplugError, UnknownTargetError, UsageError
from trtplug.lock.policy import check_policy, open_lock, override_flags
from trtplug.model.files import digest_model
from trtplug.plan import SCHEMA, Plan, PlannedTarget
from trtplug.plugin.evidence import read_evidence
from trtplug.profile import (
    bundled_folders,
    find_profile,
    load_profiles,
    nearest_names,
    profiles_digest,
    profiles_of,
)
from trtplug.store import Store, key_of
from trtplug.target import Sm, Target, parse_sm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from trtplug.backends.backend import Backend
    from trtplug.build.command import BuildCommand
    from trtplug.lock.lock import Lock
    from trtplug.plan import PlannedSite
    from trtplug.plugin.evidence import Evidence
    from trtplug.profile import GpuProfile
    from trtplug.settings import Settings

_log = logging.getLogger(__name__)


ENTRY_LAYOUT = 3
"""Raised when the files in a store entry, or their meaning, change within a tool version."""


def plan_build(command: BuildCommand, settings: Settings) -> tuple[BuildContext, Plan]:
    """Chooses backend, targets and what runs each site.

    The model is read only where the backend takes plugins, and some target is not in the store.

    Raises:
        TrtplugError: options conflict, or this machine cannot do what they ask for.
    """
    context = open_context(command, settings)
    return context, make_plan(context)


def open_context(command: BuildCommand, settings: Settings) -> BuildContext:
    """The command, checked, with everything that it names found and read but for the model itself.

    Raises:
        TrtplugError: options conflict, or this machine cannot do what they ask for.
    """
    lock = open_lock(command.policy)
    if lock is not None:
        command = _as_recorded(command, lock)
    digest = digest_model(command.model)
    profiles = load_profiles(bundled_folders(settings))
    backend = choose_backend(command.backend, lambda b: _serves(b, command, profiles))
    backend.check_options(command.options)
    check_policy(command.policy, backend)
    if lock is not None:
        from trtplug.lock.check import check_lock

        check_lock(lock, str(command.policy.locked), backend)
    return BuildContext(
        command=command,
        digest=digest,
        backend=backend,
        gpu_profiles=profiles,
        store=Store(root=settings.store),
        lock=lock,
        evidence=_evidence(command, backend),
    )


def _as_recorded(command: BuildCommand, lock: Lock) -> BuildCommand:
    """Backend and target of a lock, where none were given."""
    backend = lock.backend if command.backend == "auto" else command.backend
    targets = command.targets or (lock.target.rpartition(":")[2],)
    return replace(command, backend=backend, targets=targets)


def _serves(backend: Backend, command: BuildCommand, profiles: tuple[GpuProfile, ...]) -> bool:
    """Whether a backend can build for all targets; `make_plan` reports an unknown one."""
    sms = backend.capabilities().sms
    try:
        asked = resolve_targets(command.targets, sms, profiles, local_sm)
    except TrtplugError as error:
        _log.debug("targets are resolved later: %s", error.message)
        return True
    return set(asked) <= set(sms)


def _evidence(command: BuildCommand, backend: Backend) -> Evidence | None:
    """Measurements to choose plugins by; None where the backend takes no plugins."""
    able = backend.capabilities()
    if able.plugins:
        return read_evidence(command.plugin.evidence)
    if command.plugin.mode == "always":
        raise OptionUnsupportedError(
            option="--plugin always",
            backend=backend.name,
            version=backend.version() or "",
            advice=able.how_to_get_plugins,
        )
    return None


def make_plan(context: BuildContext) -> Plan:
    """The plan of a command: a pure function of what the context holds and of the store.

    Raises:
        UnknownTargetError: a target that is neither a profile, an SM, `local` nor `all`.
        UsageError: no target at all, or a glob of the plugin's options that matches nothing.
        TrtplugError: the model cannot be read, where choosing plugins needs it.
    """
    command, backend = context.command, context.backend
    if not command.targets:
        raise UsageError(
            "no target was given",
            "add --target rtx4090, --target sm_89 or --target all; `trtplug targets` lists them",
        )
    sms, profiles = backend.capabilities().sms, context.gpu_profiles
    asked = resolve_targets(command.targets, sms, profiles, local_sm)
    declared = declared_inputs(context)
    return Plan(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model_file=command.model.name,
        model_sha256=context.digest.sha256,
        backend=backend.name,
        backend_version=backend.version() or "",
        shapes=tuple(map(str, command.profiles[0])),
        precision=command.precision.target,
        flags=_flags(context),
        repeat=command.repeat,
        out=str(command.out),
        targets=tuple(_target(context, declared, sm, names) for sm, names in asked.items()),
    )


def resolve_targets(
    names: tuple[str, ...],
    sms: tuple[Sm, ...],
    profiles: tuple[GpuProfile, ...],
    local_sm: Callable[[], Sm],
) -> dict[Sm, tuple[str, ...]]:
    """SM -> the profiles of it that were asked for by name; in the order asked.

    Args:
        names: profiles, SMs, `local` or `all`.
        sms: of `all`.
        profiles: all GPU profiles.
        local_sm: gives the SM of this machine's GPU; called only for the target `local`.

    Raises:
        UnknownTargetError: an unknown name.
    """
    asked: dict[Sm, tuple[str, ...]] = {}
    for name in names:
        found = find_profile(name, profiles)
        sm = parse_sm(name)
        if name.lower() == "all":
            for each in sms:
                asked.setdefault(each, ())
        elif name.lower() == "local":
            asked.setdefault(local_sm(), ())
        elif found is not None:
            asked[found.sm] = tuple(dict.fromkeys((*asked.get(found.sm, ()), found.name)))
        elif sm is not None and (sm in sms or profiles_of(sm, profiles)):
            asked.setdefault(sm, ())
        else:
            raise UnknownTargetError(name=name, nearest=nearest_names(name, profiles))
    return asked


def _flags(context: BuildContext) -> dict[str, str]:
    """Options by name, as text; what is at its default may be left out."""
    command, lock = context.command, context.lock
    profiles = {
        f"profile_{number}": "; ".join(map(str, ranges))
        for number, ranges in enumerate(command.profiles[1:], 2)
    }
    flags = {**command.options.as_flags(), **command.precision.as_flags(), **profiles}
    flags |= override_flags(lock) if lock is not None else command.policy.as_flags()
    if context.evidence is not None:
        flags |= command.plugin.as_flags(context.evidence.sha256)
    return flags


def declared_inputs(context: BuildContext) -> dict[str, object]:
    """All that may change an engine of any target: a change of one of them is a miss."""
    command, backend = context.command, context.backend
    caches = backend.capabilities().timing_cache
    return {
        "layout": ENTRY_LAYOUT,
        "tool_version": trtplug.__version__,
        "model_sha256": context.digest.sha256,
        "model_file": command.model.name,
        "shapes": sorted(map(str, command.profiles[0])),
        "precision": command.precision.target,
        "flags": _flags(context),
        "backend": backend.name,
        "backend_version": backend.version() or "",
        "place": backend.device_fingerprint(),
        "profiles_sha256": profiles_digest(context.gpu_profiles),
        # `fresh` and `require` must not be given an engine that was built otherwise.
        "timing_cache": command.policy.cache if caches else "use",
        "kernels": _kernels_digest(context),
    }


def _kernels_digest(context: BuildContext) -> str:
    """What our kernels come from; empty where no site can get one."""
    if context.evidence is None or not context.command.plugin.may_choose:
        return ""
    from trtplug.plugin.choose import kernels_digest

    return kernels_digest()


def _target(
    context: BuildContext, declared: Mapping[str, object], sm: Sm, named: tuple[str, ...]
) -> PlannedTarget:
    command, backend, profiles = context.command, context.backend, context.gpu_profiles
    gpus = tuple(dict.fromkeys((*named, *(p.name for p in profiles_of(sm, profiles)))))
    version = ".".join((backend.version() or "").split(".")[:2])
    key = key_of({**declared, "sm": sm.number, "gpus": list(gpus)})
    # What a lock is to reproduce is built, and compared.
    fresh = command.force or context.lock is not None or command.repeat > 1
    supported = sm in backend.capabilities().sms
    in_store = not fresh and context.store.find(key) is not None
    return PlannedTarget(
        target=str(Target(backend=backend.name, version=version, sm=sm)),
        sm=str(sm),
        gpus=gpus,
        supported=supported,
        key=key,
        in_store=in_store,
        sites=_sites(context, sm, gpus, key if in_store else None) if supported else None,
    )


def _sites(
    context: BuildContext, sm: Sm, gpus: tuple[str, ...], stored: str | None
) -> tuple[PlannedSite, ...] | None:
    """What is to run each site and pair; None where the backend takes no plugins.

    An engine in the store has the choices that it was built with: its key holds all that they are
    made from.
    """
    if context.evidence is None:
        return None
    if stored is not None and (recorded := _recorded_sites(context.store, stored)) is not None:
        return recorded
    from trtplug.plugin.choose import choose_sites, make_query

    found = find_gpus().gpus
    query = make_query(
        context.command.plugin,
        context.evidence,
        found[0].name if found else "",
        sm,
        gpus,
        context.gpu_profiles,
        context.command.options.trt.tactic_shared_memory_bytes,
    )
    return choose_sites(context.candidates, query)


def _recorded_sites(store: Store, key: str) -> tuple[PlannedSite, ...] | None:
    from trtplug.bundle.bundle import read_entry

    entry = store.find(key)
    target = read_entry(entry) if entry is not None else None
    return target.sites if target is not None else None
