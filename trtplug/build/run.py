"""The main job, as a table of contents: plan -> builders -> engines -> reports -> bundle.

What only its later steps need is imported in them: the builders' processes start before that loads.
"""

from __future__ import annotations

import contextlib
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.request import BuildRequest, InputRange
from trtplug.backends.run_child import Children
from trtplug.build.command import LOGS, Built, Result
from trtplug.build.plan import plan_build
from trtplug.build.strategy import BuildStrategy, CachedStrategy, gate_problem, open_caching
from trtplug.bundle.manifest import (
    SCHEMA,
    Manifest,
    ManifestFailure,
    ManifestFile,
    ManifestModel,
    describe_file,
    write_manifest,
)
from trtplug.errors import TargetUnsupportedError
from trtplug.plugin.options import KERNEL_LOG
from trtplug.store import as_output_error
from trtplug.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
    from pathlib import Path

    from trtplug.backends.backend import Outcome
    from trtplug.backends.request import Event
    from trtplug.build.command import BuildCommand, Listener
    from trtplug.build.context import BuildContext
    from trtplug.build.strategy import BuilderRun, Caching
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.plugin.units import PluginOffer
    from trtplug.settings import Settings
    from trtplug.target import Sm
    from trtplug.tensor import ShapeRange

_WORK = ".work"
"""Folder below the bundle under way: what builders need and no bundle holds."""


def run_build(command: BuildCommand, settings: Settings, listener: Listener) -> Built:
    """Builds every target and publishes the bundle.

    Returns:
        The manifest of the bundle, and the reports that were made for it.

    Raises:
        TrtplugError: a reason that holds for every target; nothing was written.
    """
    from trtplug.bundle.bundle import bundle_folder, refuse_if_in_the_way

    refuse_if_in_the_way(command.out)
    context, plan = plan_build(command, settings)
    listener.planned(plan)
    results: list[Result] = []
    # Closed before the folder goes: children that still write into it would keep it from going.
    with (
        bundle_folder(command.out) as folder,
        contextlib.closing(_Build(context, plan, folder, listener).results()) as ended,
    ):
        for result in ended:
            listener.ended(result)
            results.append(result)
        return built_of(plan, results, folder, _gate_problems(command, results))


def _gate_problems(command: BuildCommand, results: list[Result]) -> tuple[str, ...]:
    """Why `--require-cache` is not met. What the store of engines has was built from a hit."""
    if command.policy.cache != "require":
        return ()
    made = ((r.target.target, r.report) for r in results if r.report is not None)
    found = ((target, gate_problem(report)) for target, report in made)
    return tuple(f"{target}: {problem}" for target, problem in found if problem)


def starts_ahead(context: BuildContext) -> bool:
    """Whether builders may have the model's file while it is still being checked here.

    Not where another file is built (a precision, plugins, external data), or where the inputs are
    compared with a lock first.
    """
    command = context.command
    return (
        context.digest.self_contained
        and command.precision.target == "keep"
        and context.evidence is None
        and context.lock is None
        and not command.policy.has_overrides
    )


class _Build:
    """A plan being carried out."""

    def __init__(self, context: BuildContext, plan: Plan, folder: Path, listener: Listener) -> None:
        self._context, self._plan = context, plan
        self._folder = folder.resolve()  # builders have another working directory
        self._on_event: Callable[[str, Event], None] = listener.event
        self._work = self._folder / _WORK
        self._repaired = self._work / "model.onnx"
        """Where the repaired model lies, if there is one."""

    def results(self) -> Generator[Result, None, None]:
        """One a target: what cannot be built, what the store has, what is built now.

        Raises:
            TrtplugError: a reason that holds for every target.
        """
        misses = []
        for target in self._plan.targets:
            if not target.supported:
                yield self._unsupported(target)
            elif (hit := self._hit(target)) is not None:
                yield hit
            else:
                misses.append(target)
        if misses:
            with self._gpu_held(misses[0].target):
                yield from self._built(misses)

    def _unsupported(self, target: PlannedTarget) -> Result:
        backend = self._context.backend
        sm = parse_target(target.target).sm
        error = unsupported(target.target, sm, backend.name, backend.capabilities().sms)
        return Result(target=target, error=error)

    def _hit(self, target: PlannedTarget) -> Result | None:
        entry = self._context.store.find(target.key) if target.in_store else None
        if entry is None:
            return None
        from trtplug.bundle.bundle import take_entry

        made = take_entry(entry, self._folder, target)
        return Result(target=target, made=made) if made is not None else None

    def _gpu_held(self, target: str) -> contextlib.AbstractContextManager[None]:
        """Holds the local GPU where the backend times kernels on it."""
        if not self._context.backend.capabilities().needs_gpu:
            return contextlib.nullcontext()
        from trtplug.backends.gpu import find_gpus
        from trtplug.backends.gpu_lock import holding_gpu

        return holding_gpu(
            find_gpus().gpus[0],
            wait=self._context.command.wait,
            on_wait=lambda what: self._on_event(target, {"event": "waiting", "name": what}),
        )

    def _built(self, targets: Sequence[PlannedTarget]) -> Iterator[Result]:
        """Results in the order in which the targets end."""
        context, command = self._context, self._context.command
        # On the local GPU one at a time: two at once would time each other's kernels.
        jobs = 1 if context.backend.capabilities().needs_gpu else command.jobs
        child, passed_on = context.backend.child_command(), context.backend.passed_on()
        with Children(child, jobs, command.limits, passed_on) as children:
            strategies = self._strategies(targets)
            self._start(children, list(strategies.values()))
            # Where builds wait for one another, no processor is free before the first has ended.
            reports_ready = len(targets) * command.repeat <= jobs
            if reports_ready:
                _prepare_reports(context)
            ended: dict[str, list[Outcome]] = defaultdict(list)
            for outcome in children.outcomes(self._on_event):
                if not reports_ready:
                    _prepare_reports(context)
                    reports_ready = True
                strategy = strategies[outcome.target]
                runs = strategy.next_runs(outcome) if outcome.status == "built" else None
                if runs is not None:
                    children.submit(self._requests(strategy, runs))
                    continue
                ended[outcome.target].append(outcome)
                if len(ended[outcome.target]) == strategy.expects:
                    from trtplug.build.finish import finish_target

                    yield finish_target(strategy, ended[outcome.target])
        shutil.rmtree(self._work, ignore_errors=True)

    def _strategies(self, targets: Sequence[PlannedTarget]) -> dict[str, BuildStrategy]:
        """By target; each with one folder a build: its own in the bundle, and others."""
        with as_output_error(self._folder):
            self._work.mkdir()
            caching = open_caching(self._context, self._plan, self._work)
            found = {}
            for target in targets:
                numbers = range(1, self._plan.repeat)
                more = (self._work / f"{target.sm}-{n}" for n in numbers)
                folders = (self._folder / target.sm, *more)
                for folder in folders:
                    folder.mkdir(exist_ok=True)
                found[target.target] = choose_strategy(
                    self._context, self._plan, target, folders, caching
                )
        return found

    def _start(self, children: Children, strategies: Sequence[BuildStrategy]) -> None:
        """Has the builders run while the model is checked here; an error of the checks comes first.

        A builder that was given a model that fails the checks is ended.
        """
        ahead = starts_ahead(self._context)
        if ahead:
            self._submit(children, strategies)
        else:
            children.warm(len(strategies) * self._plan.repeat)
        source = self._context.source
        repaired = source.prepared.data
        if repaired is not None:
            with as_output_error(self._folder):
                self._repaired.write_bytes(repaired)
        for strategy in strategies:
            strategy.check(source)
        if self._context.evidence is not None:
            for strategy in strategies:
                strategy.offer = self._offer(strategy.target)
        if ahead and repaired is not None:
            children.withdraw()
        if repaired is not None or not ahead:
            self._submit(children, strategies)

    def _submit(self, children: Children, strategies: Iterable[BuildStrategy]) -> None:
        for strategy in strategies:
            children.submit(self._requests(strategy, strategy.first_runs()))

    def _offer(self, target: PlannedTarget) -> PluginOffer:
        """What the builder is offered beside the model, as the plan says."""
        from trtplug.kernels.choose import KernelTarget
        from trtplug.plugin.offer import make_offer
        from trtplug.plugin.units import PluginOffer

        context = self._context
        options = context.command.plugin
        offer = PluginOffer(mode=options.mode, sites=target.sites or ())
        if not options.may_choose:
            return offer
        made = make_offer(
            context.source,
            offer,
            context.candidates,
            KernelTarget(sm=parse_target(target.target).sm, profile=None),
            self._work / f"plugin-{target.sm}",
            context.store,
            context.command.jobs,
            lambda event: self._on_event(target.target, event),
        )
        if made.log:
            with as_output_error(self._folder):
                (self._folder / target.sm / KERNEL_LOG).write_text(made.log, encoding="utf-8")
        return made

    def _requests(
        self, strategy: BuildStrategy, runs: Sequence[BuilderRun]
    ) -> Iterator[BuildRequest]:
        """What the builder is asked; says so first where a build has several runs."""
        if runs and (first := runs[0]).name:
            event = {"event": "pass", "name": first.name, "number": first.number, "of": first.of}
            self._on_event(strategy.target.target, event)
        for run in runs:
            yield self._request(strategy, run)

    def _request(self, strategy: BuildStrategy, run: BuilderRun) -> BuildRequest:
        command, offer = self._context.command, strategy.offer
        data = offer.model if offer is not None else None
        if data is None and self._repaired.exists():
            data = self._repaired
        first, *more = map(_input_ranges, command.profiles)
        return BuildRequest(
            target=strategy.target.target,
            sm=parse_target(strategy.target.target).sm.number,
            # A link is not followed: external data lies beside the name that was given.
            model=str(command.model.parent.resolve() / command.model.name),
            data=str(data) if data is not None else None,
            plugin_kit=str(offer.kit) if offer is not None and offer.kit is not None else None,
            ranges=first,
            more_profiles=tuple(more),
            options=command.options,
            timing_cache=str(run.timing_cache) if run.timing_cache is not None else None,
            strict_cache=run.strict_cache,
            record=run.record,
            folder=str(run.folder),
            # What times kernels keeps its log in full: a second try would give other times.
            verbose=not self._context.backend.capabilities().reproducible,
        )


def _input_ranges(ranges: tuple[ShapeRange, ...]) -> tuple[InputRange, ...]:
    return tuple(InputRange(name=r.name, min=r.min, opt=r.opt, max=r.max) for r in ranges)


def choose_strategy(
    context: BuildContext,
    plan: Plan,
    target: PlannedTarget,
    folders: Sequence[Path],
    caching: Caching | None,
) -> BuildStrategy:
    """How one target is built.

    Raises:
        OutputError: the store of timing caches cannot be written.
    """
    if context.lock is not None:
        from trtplug.build.replay import ReplayStrategy

        return ReplayStrategy(context, plan, target, folders, context.lock, caching)
    if caching is None:
        return BuildStrategy(context, plan, target, folders)
    if context.command.policy.has_overrides:
        from trtplug.build.two_pass import TwoPassStrategy

        return TwoPassStrategy(context, plan, target, folders, caching)
    return CachedStrategy(context, plan, target, folders, caching)


def _prepare_reports(context: BuildContext) -> None:
    """Loads what reports need, while there is nothing to do but wait for the builders.

    Raises:
        TrtplugError: a node contradicts the shapes, which holds for every target.
    """
    from trtplug.report.html import load_page
    from trtplug.report.text import load_console

    _ = context.facts
    load_page()
    load_console()


def built_of(
    plan: Plan, results: Sequence[Result], folder: Path, gate_problems: tuple[str, ...]
) -> Built:
    """Writes the manifest of a bundle under way, in the order of the plan's targets."""
    order = {target.target: place for place, target in enumerate(plan.targets)}
    results = sorted(results, key=lambda r: order[r.target.target])
    failed = [r for r in results if r.made is None]
    manifest = Manifest(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        model=ManifestModel(file=plan.model_file, sha256=plan.model_sha256),
        plan_sha256=plan.sha256,
        targets=tuple(r.made for r in results if r.made is not None),
        failures=tuple(_failure(r, folder) for r in failed),
        files=tuple(f for r in failed for f in _log_files(r, folder)),
    )
    write_manifest(folder, manifest)
    reports = {r.target.target: r.report for r in results if r.report is not None}
    return Built(manifest=manifest, reports=reports, gate_problems=gate_problems)


def _failure(result: Result, folder: Path) -> ManifestFailure:
    """A target that was not built, as the manifest lists it."""
    error = result.error
    assert error is not None
    logs = _log_files(result, folder)
    return ManifestFailure(
        target=result.target.target,
        code=error.code,
        message=error.message,
        hint=error.hint,
        log=logs[0].path if logs else None,
    )


def _log_files(result: Result, folder: Path) -> tuple[ManifestFile, ...]:
    """The logs of a failed build, where there are any; the builder's own comes first."""
    paths = (f"{result.target.sm}/{name}" for name in LOGS)
    return tuple(describe_file(folder, path) for path in paths if (folder / path).is_file())


def unsupported(target: str, sm: Sm, backend: str, sms: Sequence[Sm]) -> TargetUnsupportedError:
    """The error for an SM that a backend does not build for."""
    return TargetUnsupportedError(
        target=target,
        backend=backend,
        supported=tuple(map(str, sms)),
        who=f"build it with TensorRT (enterprise) on a machine with an {sm} GPU",
    )
