"""How one target is built: the runs of its builder, and how its files are made of them.

A builder without timing caches takes `BuildStrategy` itself: each build is one run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.context import BuildContext
    from trtplug.bundle.manifest import Agreement, ManifestTarget
    from trtplug.errors import TrtplugError
    from trtplug.model.source import Source
    from trtplug.plan import Plan, PlannedTarget
    from trtplug.plugin.offer import PluginOffer
    from trtplug.report.candidates import Tactics
    from trtplug.report.data import Report


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
        self, context: BuildContext, plan: Plan, target: PlannedTarget, folders: Sequence[Path]
    ) -> None:
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

    def finish(
        self, outcomes: Sequence[Outcome], agreement: Agreement | None
    ) -> tuple[ManifestTarget, Report]:
        """Makes the target's files, once all builds have ended well; the first one ships.

        Raises:
            TrtplugError: what was built is not what was asked for.
        """
        return self._write(outcomes, agreement, None)

    def _write(
        self, outcomes: Sequence[Outcome], agreement: Agreement | None, tactics: Tactics | None
    ) -> tuple[ManifestTarget, Report]:
        from trtplug.build.finish import write_target

        return write_target(
            self.context, self.plan, self.target, outcomes[0], agreement, tactics, self.offer
        )

    def keeps(self, report: Report) -> bool:  # noqa: ARG002
        """Whether the store of engines may have what was made."""
        return True


def builder_refused(outcome: Outcome) -> bool:
    """Whether the builder itself gave no engine; one that it gave may have failed its trial run."""
    return outcome.status == "failed" and not outcome.engine_sha256
