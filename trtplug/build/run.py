"""The main job, as a table of contents: model -> plan -> engines -> reports -> bundle.

What only its later steps need is imported in them: the builders' processes start before that loads.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Protocol

import trtplug
from trtplug.build.children import build_misses
from trtplug.build.command import plan_build
from trtplug.build.context import Job
from trtplug.lock.policy import TIMING_CACHES
from trtplug.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from trtplug.backends.request import Event
    from trtplug.build.command import BuildCommand, Planned
    from trtplug.build.outcomes import Built, Result
    from trtplug.bundle.manifest import Manifest
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.settings import Settings


class Listener(Protocol):
    """Hears how a build goes."""

    def planned(self, plan: Plan) -> None:
        """Once, before anything is built."""

    def event(self, target: str, event: Event) -> None:
        """Progress of one build."""

    def ended(self, result: Result) -> None:
        """One target is done, or has failed."""


def run_build(command: BuildCommand, settings: Settings, listener: Listener) -> Built:
    """Builds every target and publishes the bundle.

    Returns:
        The manifest of the bundle, and the reports that were made for it.

    Raises:
        TrtplugError: a reason that holds for every target; nothing was written.
    """
    from trtplug.bundle.bundle import bundle_folder, refuse_if_in_the_way

    refuse_if_in_the_way(command.out)
    planned = plan_build(command, settings)
    listener.planned(planned.plan)
    results: list[Result] = []
    # Closed before the folder goes: children that still write into it would keep it from going.
    with (
        bundle_folder(command.out) as folder,
        contextlib.closing(_results(planned, folder, listener)) as ended,
    ):
        for result in ended:
            listener.ended(result)
            results.append(result)
        manifest = _manifest(planned.plan, results, folder)
    from trtplug.build.outcomes import built_of

    return built_of(manifest, results, _gate_problems(planned, results))


def _gate_problems(planned: Planned, results: list[Result]) -> tuple[str, ...]:
    """Why `--require-cache` is not met. What the store of engines has was built from a hit."""
    if planned.command.policy.cache != "require":
        return ()
    from trtplug.build.with_cache import gate_problem

    made = ((r.target.target, r.report) for r in results if r.report is not None)
    found = ((target, gate_problem(report)) for target, report in made)
    return tuple(f"{target}: {problem}" for target, problem in found if problem)


def _results(planned: Planned, folder: Path, listener: Listener) -> Generator[Result, None, None]:
    """One result a target: what cannot be built, what the store has, what is built now."""
    misses = []
    for target in planned.plan.targets:
        if not target.supported:
            yield _unsupported(target, planned)
        elif (hit := _hit(planned, target, folder)) is not None:
            yield hit
        else:
            misses.append(target)
    if misses:
        with _gpu_held(planned, listener, misses[0].target):
            yield from build_misses(_job(planned, folder), tuple(misses), listener.event)


def _job(planned: Planned, folder: Path) -> Job:
    command = planned.command
    return Job(
        model=command.model,
        ranges=command.shapes,
        more_profiles=command.more_profiles,
        precision=command.precision,
        options=command.options,
        limits=command.limits,
        jobs=command.jobs,
        backend=planned.backend,
        profiles=planned.profiles,
        store=planned.store,
        plan=planned.plan,
        ahead=planned.ahead,
        folder=folder.resolve(),
        timing_caches=planned.store.root / TIMING_CACHES,
        policy=command.policy,
        lock=planned.lock,
        plugins=planned.plugins,
    )


def _gpu_held(
    planned: Planned, listener: Listener, target: str
) -> contextlib.AbstractContextManager[None]:
    """Holds the GPU at hand where the backend times kernels on it."""
    if not planned.backend.capabilities().needs_gpu:
        return contextlib.nullcontext()
    from trtplug.backends.gpu import find_gpus
    from trtplug.backends.gpu_lock import holding_gpu

    return holding_gpu(
        find_gpus().gpus[0],
        wait=planned.command.wait,
        on_wait=lambda words: listener.event(target, {"event": "waiting", "name": words}),
    )


def _hit(planned: Planned, target: PlannedTarget, folder: Path) -> Result | None:
    entry = planned.store.find(target.key) if target.in_store else None
    if entry is None:
        return None
    from trtplug.build.outcomes import Result
    from trtplug.bundle.bundle import take_entry

    made = take_entry(entry, folder)
    return Result(target=target, made=made) if made is not None else None


def _unsupported(target: PlannedTarget, planned: Planned) -> Result:
    from trtplug.build.outcomes import Result, unsupported

    backend = planned.backend
    sm = parse_target(target.target).sm
    error = unsupported(target.target, sm, backend.name, backend.capabilities().sms)
    return Result(target=target, error=error)


def _manifest(plan: Plan, results: list[Result], folder: Path) -> Manifest:
    """Writes the manifest of a bundle under way."""
    from trtplug.build.outcomes import failure_entry, log_files
    from trtplug.bundle.manifest import SCHEMA, Manifest, ManifestModel, write_manifest

    order = {target.target: place for place, target in enumerate(plan.targets)}
    results = sorted(results, key=lambda r: order[r.target.target])
    manifest = Manifest(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=ManifestModel(file=plan.model_file, sha256=plan.model_sha256),
        targets=tuple(r.made for r in results if r.made is not None),
        failures=tuple(failure_entry(r, folder) for r in results if r.made is None),
        files=tuple(f for r in results if r.made is None for f in log_files(r, folder)),
    )
    write_manifest(folder, manifest)
    return manifest
