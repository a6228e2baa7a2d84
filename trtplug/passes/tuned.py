"""Two passes for tactics that were asked for: the first records, the second builds with the edits.

The first pass begins with an empty cache, since only what the builder times is in its log. Its
winners are measurements, and the store may have them; those of the second are a choice, and ship
with the engine alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import CandidateTable
from trtplug.engine.build_cache import lay_out
from trtplug.engine.built_files import read_tables
from trtplug.engine.cache_sidecar import winners_of
from trtplug.engine.lock import CACHE
from trtplug.engine.pins import (
    CacheEdit,
    TacticWishes,
    ban_problems,
    edit_problems,
    edit_values,
    legal_tactics,
    plan_edits,
)
from trtplug.engine.timing_cache import Attached, CacheOutcome
from trtplug.errors import TacticUnavailableError
from trtplug.passes.course import Course, Pass, builder_refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.engine.manifest import Agreement, ManifestTarget
    from trtplug.errors import TrtplugError
    from trtplug.passes.cached import Caching
    from trtplug.plan.plan import PlannedTarget
    from trtplug.produce.ground import Ground
    from trtplug.report.report import Report

_APART = "tactics were chosen by --pin, --ban or --prefer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the first pass gave, and what is made of it."""

    tables: tuple[CandidateTable, ...]
    shown: frozenset[str]
    """Keys whose engine layer named its kernel in the words of the log."""
    edits: tuple[CacheEdit, ...]
    cache: CacheOutcome | None
    """Of the first pass."""
    edited: Attached
    """What the second pass begins with."""


class TunedCourse(Course):
    """Record, edit, build."""

    def __init__(
        self,
        target: PlannedTarget,
        folders: Sequence[Path],
        caching: Caching,
        wishes: TacticWishes,
    ) -> None:
        super().__init__(target, folders)
        self.caching = caching
        self.wishes = wishes
        self.expects = 1  # until the recording is there
        self._recorded: Recorded | None = None

    def opening(self) -> tuple[Pass, ...]:
        """The pass that records."""
        folder = self.caching.work / f"{self.target.sm}-record"
        folder.mkdir()
        name = "recording the tactics of each layer"
        return (Pass(target=self.target, folder=folder, record=True, name=name, number=1, of=2),)

    def following(self, ground: Ground, outcome: Outcome) -> tuple[Pass, ...] | None:
        """The builds, from the edited cache.

        Raises:
            TacticUnavailableError: a wish cannot be honoured.
        """
        if self._recorded is not None:
            return None
        recorded = self._recorded = self._record(ground, Path(outcome.folder))
        self.expects = len(self.folders)
        file = lay_out(recorded.edited, self.caching.work / f"{self.target.sm}.cache")
        count = len(recorded.edits)
        name = f"building with {count} {'tactic' if count == 1 else 'tactics'} changed"
        return tuple(
            Pass(target=self.target, folder=f, timing_cache=file, name=name, number=2, of=2)
            for f in self.folders
        )

    def _record(self, ground: Ground, folder: Path) -> Recorded:
        from trtplug.passes.recording import read_naming

        tables = read_tables(folder / "build.log")
        naming = read_naming(folder, tables, ground.prepared.names)
        edits = plan_edits(tables, self.wishes, naming.names)
        outcome = self.caching.take(self.caching.empty(), folder)
        return Recorded(
            tables=tables,
            shown=naming.shown,
            edits=edits,
            cache=outcome,
            edited=self._edited(folder, edits),
        )

    def _edited(self, folder: Path, edits: tuple[CacheEdit, ...]) -> Attached:
        """The recorded cache with the tactics that were asked for."""
        api, file = self.caching.api, folder / CACHE
        blob = file.read_bytes() if file.is_file() else None
        if edits and blob is not None:
            blob = api.update(blob, edit_values(edits))
        values = api.read(blob) if blob is not None else None
        if values is None and edits:
            raise TacticUnavailableError(
                layer=", ".join(e.op for e in edits),
                problem="TensorRT does not take the edits of its timing cache",
                legal=(),
            )
        return dataclasses.replace(
            self.caching.empty(), blob=blob, before=winners_of(values) if values else {}
        )

    def why_failed(self, outcome: Outcome) -> TrtplugError | None:
        """A builder that cannot use a tactic says so when it builds, not when it is told."""
        recorded = self._recorded
        if recorded is None or not recorded.edits or not builder_refused(outcome):
            return None
        words = "\n".join(outcome.reasons)
        named = [e for e in recorded.edits if e.op in words] or list(recorded.edits)
        return TacticUnavailableError(
            layer=", ".join(e.op for e in named),
            problem=f"TensorRT did not build with the tactics that were asked for: {words}",
            legal=self._legal(named[0].key) if len(named) == 1 else (),
        )

    def finish(
        self, ground: Ground, outcomes: Sequence[Outcome], agreement: Agreement | None
    ) -> tuple[ManifestTarget, Report]:
        """Makes the files, and holds what was built against what was asked for.

        Raises:
            TacticUnavailableError: the builder took other tactics.
        """
        from trtplug.produce.target import produce_target
        from trtplug.report.tactics import Tactics

        recorded = self._recorded
        assert recorded is not None
        for outcome in outcomes:
            folder = Path(outcome.folder)
            self.caching.take(recorded.edited, folder, _APART)
            self._check_kept(recorded.edits, folder)
        tactics = Tactics(
            cache=recorded.cache,
            tables=recorded.tables,
            asked_by={e.key: e.reason for e in recorded.edits},
        )
        made, report = produce_target(ground, self.target, outcomes[0], agreement, tactics)
        self._check_used(recorded, report)
        self._check_bans(report)
        return made, report

    def _check_kept(self, edits: tuple[CacheEdit, ...], folder: Path) -> None:
        """In the cache that the build left."""
        file = folder / CACHE
        values = self.caching.api.read(file.read_bytes()) if file.is_file() else None
        after = winners_of(values) if values is not None else {}
        if problems := edit_problems(edits, after):
            first = next(e for e in edits if after.get(e.key) != e.tactic_hash)
            raise self._unavailable(first.op, first.key, problems)

    def _check_used(self, recorded: Recorded, report: Report) -> None:
        """In the engine, where the first pass showed that it tells."""
        used = {(x.cache_key, x.kernel) for x in report.layers}
        lost = [
            e for e in recorded.edits if e.key in recorded.shown and (e.key, e.kernel) not in used
        ]
        if lost:
            problems = (f"{e.kernel} was asked for, no layer of the engine has it" for e in lost)
            raise self._unavailable(lost[0].op, lost[0].key, tuple(problems))

    def _check_bans(self, report: Report) -> None:
        """In the engine, under whatever name a layer has by now."""
        for layer in report.layers:
            kernels = {layer.name: layer.kernel} if layer.kernel is not None else {}
            if problems := ban_problems(self.wishes.bans, kernels):
                raise self._unavailable(layer.name, layer.cache_key, problems)

    def _unavailable(
        self, layer: str, key: str | None, problems: tuple[str, ...]
    ) -> TacticUnavailableError:
        words = "; ".join(p.removeprefix(f"{layer}: ") for p in problems)
        return TacticUnavailableError(layer=layer, problem=words, legal=self._legal(key))

    def _legal(self, key: str | None) -> tuple[str, ...]:
        tables: Mapping[str, CandidateTable] = {
            t.key: t for t in (self._recorded.tables if self._recorded else ())
        }
        return legal_tactics(tables[key]) if key is not None and key in tables else ()
