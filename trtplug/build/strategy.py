"""How one target is built: the runs of its builder, what they leave, and checks of what they built.

Builders without timing caches take `BuildStrategy` itself, others by default `CachedStrategy`: each
run begins with the cache that the store has for this machine. Either way a build is one run.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.cache_api import CachingBackend, TimingCacheApi
from trtplug.backends.layer_listing import Listing, parse_inspector_json, parse_layer_text
from trtplug.errors import OutputError
from trtplug.lock.policy import TIMING_CACHES, CacheUse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.backends.tactic_table import CandidateTable
    from trtplug.build.context import BuildContext
    from trtplug.errors import TrtplugError
    from trtplug.model.source import Source
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.plugin.units import PluginOffer
    from trtplug.report.candidates import Tactics
    from trtplug.report.data import Report
    from trtplug.timing.identity import CacheIdentity  # noqa: TC004
    from trtplug.timing.store import Attached, CacheOutcome, TimingCacheStore  # noqa: TC004

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuilderRun:
    """One run of the builder for a target."""

    folder: Path
    """Of its own, for all that the builder leaves."""
    timing_cache: Path | None = None
    """To begin with; None begins with an empty one."""
    strict_cache: bool = False
    """Whether a tactic that the cache lacks ends the build."""
    record: bool = False
    """Whether only what is learned about tactics counts."""
    name: str = ""
    """For people; empty where a build has one run."""
    number: int = 1
    of: int = 1


class BuildStrategy:
    """One run for each build, from an empty cache."""

    def __init__(
        self,
        context: BuildContext,
        plan: Plan,
        target: PlannedTarget,
        folders: Sequence[Path],
        caching: Caching | None = None,
    ) -> None:
        self._caching = caching
        self.context, self.plan, self.target = context, plan, target
        self.folders = tuple(folders)
        """One for each build; the first is the target's own in the bundle."""
        self.expects = len(self.folders)
        """Runs whose outcomes are to be waited for."""
        self.offer: PluginOffer | None = None
        """Plugins for the builder; None where the backend takes none."""

    def first_runs(self) -> tuple[BuilderRun, ...]:
        """The runs to begin with."""
        return tuple(BuilderRun(folder=folder) for folder in self.folders)

    def check(self, source: Source) -> None:
        """Checks the model as it will be built, before any run that does not start ahead.

        Raises:
            TrtplugError: it must not be built so.
        """

    def next_runs(self, outcome: Outcome) -> tuple[BuilderRun, ...] | None:
        """The runs after one that only records; None after one that builds.

        Raises:
            TrtplugError: what was asked for cannot be had.
        """

    def explain_failure(self, outcome: Outcome) -> TrtplugError | None:
        """What a failed run means for this strategy; None where the builder's reasons suffice."""

    def collect_tactics(self, outcomes: Sequence[Outcome]) -> Tactics | None:  # noqa: ARG002
        """What is known of tactics beside the build's log, once all builds have ended well.

        Raises:
            TrtplugError: a build left another timing cache than it was to leave.
        """
        return None

    def check_report(self, report: Report) -> None:
        """Compares what was built with what was asked for, once the target's files are made.

        Raises:
            TrtplugError: they differ.
        """

    def keeps(self, report: Report) -> bool:  # noqa: ARG002
        """Whether the store of engines may have what was made."""
        return True


UNKNOWN = "unknown"
"""A driver or CUDA version that nothing here reports; no lock with it ever qualifies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """A builder's timing caches on this machine, for one command."""

    api: TimingCacheApi
    store: TimingCacheStore
    identity: CacheIdentity
    use: CacheUse
    work: Path
    """A folder for what builders are given."""
    model_sha256: str

    @property
    def bypass_reason(self) -> str:
        """Why the store is not used; empty where it is."""
        if self.use == "fresh":
            return "--no-timing-cache"
        if UNKNOWN in (self.identity.driver, self.identity.cuda):
            return "the driver does not report its version, so no cache is certain to fit it"
        return ""

    def attach(self) -> Attached:
        """What the store has; an empty cache where it is not used."""
        if self.bypass_reason:
            _log.info("no timing cache is attached: %s", self.bypass_reason)
            return self.empty()
        return self.store.attach(self.identity, self.api)

    def empty(self) -> Attached:
        """An empty cache to begin with."""
        from trtplug.timing.store import Attached

        return Attached(identity=self.identity, blob=None, before={}, rejected="", quarantined=None)

    def publish(
        self, attached: Attached, folder: Path, bypass_reason: str = ""
    ) -> CacheOutcome | None:
        """Publishes the cache that a run left in its folder.

        A store that cannot be written costs later builds their time, and this one nothing.

        Args:
            attached: what the run began with.
            folder: of the run.
            bypass_reason: why no other build is to have it; empty where the store may.

        Raises:
            OutputError: the folder cannot be written.
        """
        if why := bypass_reason or self.bypass_reason:
            _log.info("the build's timing cache is not published: %s", why)
            return self._publish(None, attached, folder, why)
        try:
            return self._publish(self.store, attached, folder)
        except OutputError as error:
            why = f"the store cannot be written: {error.problem}"
            _log.info("the build's timing cache is not published: %s", why)
            return self._publish(None, attached, folder, why)

    def _publish(
        self, store: TimingCacheStore | None, attached: Attached, folder: Path, why: str = ""
    ) -> CacheOutcome | None:
        from trtplug.timing.transfer import publish_cache

        return publish_cache(
            store, attached, self.api, folder, model_sha256=self.model_sha256, bypass_reason=why
        )

    def for_child(self, attached: Attached, target: PlannedTarget) -> Path | None:
        """The file that the runs of a target begin with; None where they begin with none."""
        from trtplug.timing.transfer import write_cache_for_child

        return write_cache_for_child(attached, self.work / f"{target.sm}.cache")

    def winners(self, folder: Path) -> Mapping[str, str]:
        """Key -> tactic hash of the cache that a run left; empty where it left none."""
        from trtplug.timing.files import CACHE, winners_of

        file = folder / CACHE
        values = self.api.read(file.read_bytes()) if file.is_file() else None
        return winners_of(values) if values is not None else {}


def open_caching(context: BuildContext, plan: Plan, work: Path) -> Caching | None:
    """The builder's timing caches on this machine; None for a builder that has none.

    Args:
        context: of the command.
        plan: of the command.
        work: folder for what builders are given.
    """
    if not isinstance(context.backend, CachingBackend):
        return None
    from trtplug.backends.find import read_machine
    from trtplug.timing.identity import CacheIdentity, implementation_flags
    from trtplug.timing.store import TimingCacheStore

    machine = read_machine()
    gpu = machine.gpus[0]  # the one that builders take
    identity = CacheIdentity(
        gpu=gpu.name,
        sm=str(gpu.sm),
        driver=machine.driver or UNKNOWN,
        cuda=machine.cuda or UNKNOWN,
        builder=plan.backend_version,
        flags=implementation_flags(plan.flags),
    )
    return Caching(
        api=context.backend.timing_caches(),
        store=TimingCacheStore(root=context.store.root / TIMING_CACHES),
        identity=identity,
        use=context.command.policy.cache,
        work=work,
        model_sha256=plan.model_sha256,
    )


class CachedStrategy(BuildStrategy):
    """All builds of a target begin with the same cache, so that repeated ones can be compared."""

    _caching: Caching

    def first_runs(self) -> tuple[BuilderRun, ...]:
        """The runs to begin with."""
        self._attached = self._caching.attach()
        file = self._caching.for_child(self._attached, self.target)
        return tuple(BuilderRun(folder=folder, timing_cache=file) for folder in self.folders)

    def collect_tactics(self, outcomes: Sequence[Outcome]) -> Tactics:
        """Publishes each build's cache."""
        from trtplug.report.candidates import Tactics

        published = [self._caching.publish(self._attached, Path(o.folder)) for o in outcomes]
        return Tactics(cache=published[0])

    def keeps(self, report: Report) -> bool:
        """Where a hit is required, nothing else is kept: a later build is to try again."""
        return self._caching.use != "require" or not gate_problem(report)


def gate_problem(report: Report) -> str:
    """Why `--require-cache` is not met; empty where it is."""
    cache = report.timing_cache
    from trtplug.timing.accounting import require_cache_problem

    if cache is None:
        return "the build left no timing cache"
    return require_cache_problem(cache.word, cache.reason)


def builder_refused(outcome: Outcome) -> bool:
    """Whether the builder itself gave no engine; one that it gave may have failed its trial run."""
    return outcome.status == "failed" and not outcome.engine_sha256


def consume_listing(folder: Path) -> Listing | None:
    """The layers, from the builder's text, which is removed, or from the inspector's file."""
    text, inspector = folder / "layers.txt", folder / "inspector.json"
    if text.is_file():
        listing = parse_layer_text(text.read_text(encoding="utf-8"))
        text.unlink()
        return listing
    if inspector.is_file():
        try:
            return parse_inspector_json(inspector.read_text(encoding="utf-8", errors="refolder"))
        except ValueError as error:
            _log.info("inspector.json is not used: %s", error)
            return None  # the report lists none
    return None


def read_tables(log: Path) -> tuple[CandidateTable, ...]:
    """The candidate tables in a builder's log, and what it took from its timing cache.

    What the log times in one place and takes from the cache in another (a second profile asks for
    all layers again) is both. Most logs of TensorRT-RTX have neither, and are not parsed.
    """
    data = log.read_bytes()
    if b"Autotuning " not in data and b"got cached result" not in data:
        return ()
    from trtplug.backends.tactic_table import with_plain_hashes
    from trtplug.backends.trt.tactic_log import parse_tactic_text

    found = parse_tactic_text(data.decode("utf-8", "replace"))
    tables = (*found.tables, *(hit.table() for hit in found.hits))
    return tuple(map(with_plain_hashes, tables))
