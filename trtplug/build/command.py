"""What `trtplug build` was asked, and all that is known before a builder starts."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.backend import Backend
from trtplug.backends.find import choose_backend, local_sm
from trtplug.backends.options import BuildOptions
from trtplug.backends.run_child import Limits
from trtplug.build.make_plan import Builder, Wish, make_plan, resolve_targets
from trtplug.errors import OptionUnsupportedError, TrtplugError
from trtplug.lock.policy import TacticPolicy, check_lock, check_policy, open_lock, wishes_of
from trtplug.model.files import digest_model
from trtplug.model.precision_options import PrecisionWish
from trtplug.plan import Plan
from trtplug.plugin.options import PluginWish
from trtplug.profile import GpuProfile, bundled_folders, load_profiles
from trtplug.store import Store
from trtplug.tensor import ShapeRange

if TYPE_CHECKING:
    from trtplug.lock.lock import Lock  # noqa: TC004
    from trtplug.model.source import Source
    from trtplug.plugin.job import PluginJob  # noqa: TC004
    from trtplug.settings import Settings

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildCommand:
    """What `trtplug build` was asked to do."""

    model: Path
    targets: tuple[str, ...]
    shapes: tuple[ShapeRange, ...]
    out: Path
    precision: PrecisionWish = field(default_factory=PrecisionWish)
    backend: str = "auto"
    options: BuildOptions = field(default_factory=BuildOptions)
    more_profiles: tuple[tuple[ShapeRange, ...], ...] = ()
    """Optimization profiles beside that of `shapes`."""
    wait: bool = True
    """Wait while another build holds the GPU."""
    limits: Limits = field(default_factory=Limits)
    jobs: int = 2
    """Builds at once."""
    repeat: int = 1
    """How often each engine is built, to see whether the builds agree."""
    force: bool = False
    """Build even where the store has the engine."""
    policy: TacticPolicy = field(default_factory=TacticPolicy)
    """Where tactics come from."""
    plugin: PluginWish = field(default_factory=PluginWish)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Everything known before a builder starts."""

    command: BuildCommand
    backend: Backend
    profiles: tuple[GpuProfile, ...]
    store: Store
    plan: Plan
    ahead: bool
    """Whether builders may have the file while it is still being checked here."""
    lock: Lock | None
    """To be replayed."""
    plugins: PluginJob | None
    """None where the backend takes none."""


def plan_build(command: BuildCommand, settings: Settings) -> Planned:
    """Chooses backend and targets and plans; starts nothing, writes nothing.

    Raises:
        TrtplugError: what was asked for cannot be meant, or this machine cannot do it.
    """
    lock = open_lock(command.policy)
    command = _as_recorded(command, lock)
    digest = digest_model(command.model)
    profiles = load_profiles(bundled_folders(settings))
    backend = choose_backend(command.backend, lambda b: _serves(b, command, profiles))
    backend.check_options(command.options)
    check_policy(command.policy, backend)
    if lock is not None:
        check_lock(lock, str(command.policy.locked), backend)
    store = Store(root=settings.store)
    plugins = _plugin_job(command, backend, profiles, store)
    wish = Wish(
        model_file=command.model.name,
        model_sha256=digest.sha256,
        targets=command.targets,
        shapes=tuple(str(s) for s in command.shapes),
        precision=command.precision.target,
        flags={**_flags(command, lock), **(plugins.as_flags() if plugins else {})},
        timing_cache=command.policy.cache if backend.capabilities().timing_cache else "use",
        repeat=command.repeat,
        # What a lock is to reproduce is built, and compared.
        fresh=command.force or lock is not None,
        kernels=plugins.kernels_digest() if plugins else "",
        out=str(command.out),
    )
    plan = make_plan(wish, _builder(backend), profiles, store, local_sm)
    return Planned(
        command=command,
        backend=backend,
        profiles=profiles,
        store=store,
        plan=plan,
        ahead=digest.self_contained
        and command.precision.target == "keep"
        # What a builder with plugins reads is made first; what goes in is compared with a lock.
        and not (plugins and plugins.may_choose)
        and lock is None
        and not command.policy.wished,
        lock=lock,
        plugins=plugins,
    )


def _as_recorded(command: BuildCommand, lock: Lock | None) -> BuildCommand:
    """Backend and target of a lock, where none were given."""
    if lock is None:
        return command
    backend = lock.backend if command.backend == "auto" else command.backend
    targets = command.targets or (lock.target.rpartition(":")[2],)
    return replace(command, backend=backend, targets=targets)


def _plugin_job(
    command: BuildCommand, backend: Backend, profiles: tuple[GpuProfile, ...], store: Store
) -> PluginJob | None:
    """What plugins are chosen with; None where the backend takes none."""
    wish = command.plugin
    able = backend.capabilities()
    if not able.plugins:
        if wish.mode == "always":
            raise OptionUnsupportedError(
                option="--plugin always",
                backend=backend.name,
                version=backend.version() or "",
                advice=able.how_to_get_plugins,
            )
        return None
    from trtplug.plugin.evidence import read_evidence
    from trtplug.plugin.job import PluginJob

    return PluginJob(
        wish=wish,
        evidence=read_evidence(wish.evidence),
        profiles=profiles,
        options=command.options,
        store=store,
        jobs=command.jobs,
    )


def with_choices(planned: Planned, source: Source) -> Plan:
    """The plan with a choice for each site; nothing is compiled or built for it.

    Raises:
        UsageError: a glob of the plugin's options that matches nothing.
    """
    plan = planned.plan
    if planned.plugins is None:
        return plan
    offers = planned.plugins.choices(source, (t for t in plan.targets if t.supported))
    targets = tuple(
        replace(t, sites=offers[t.target].choices.sites) if t.target in offers else t
        for t in plan.targets
    )
    return replace(plan, targets=targets)


def check_replay(planned: Planned, source: Source) -> None:
    """Holds what was asked for against the lock, as far as that can be told without a builder.

    Raises:
        LockMismatchError: something differs.
    """
    lock, path = planned.lock, str(planned.command.policy.locked)
    if lock is None:
        return
    from trtplug.build.replay import asked_lock
    from trtplug.lock.check import inner_problems, require_replayed
    from trtplug.lock.diff import input_differences

    for target in planned.plan.targets:
        asked = asked_lock(planned.plan, target, lock, source)
        require_replayed(path, (*map(str, input_differences(lock, asked)), *inner_problems(lock)))


def _flags(command: BuildCommand, lock: Lock | None) -> dict[str, str]:
    profiles = {
        f"profile_{position}": "; ".join(map(str, ranges))
        for position, ranges in enumerate(command.more_profiles, 2)
    }
    flags = {**command.options.as_flags(), **command.precision.as_flags(), **profiles}
    return {**flags, **(wishes_of(lock) if lock is not None else command.policy.as_flags())}


def _builder(backend: Backend) -> Builder:
    return Builder(
        name=backend.name,
        version=backend.version() or "",
        sms=backend.capabilities().sms,
        place=backend.device_fingerprint(),
    )


def _serves(backend: Backend, command: BuildCommand, profiles: tuple[GpuProfile, ...]) -> bool:
    """Whether a backend can build for all targets; one that cannot be resolved is told later."""
    try:
        asked = resolve_targets(command.targets, _builder(backend), profiles, local_sm)
    except TrtplugError as error:
        _log.debug("targets are resolved later: %s", error.message)
        return True
    return set(asked) <= set(backend.capabilities().sms)
