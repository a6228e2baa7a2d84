"""`--pin`, `--ban` and `--prefer`: a run that records, and builds from the edited timing cache."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import CandidateTable
from trtplug.build.strategy import (
    BuilderRun,
    BuildStrategy,
    builder_refused,
    consume_listing,
    read_tables,
)
from trtplug.errors import TacticUnavailableError
from trtplug.lock.policy import (
    CacheEdit,
    ban_problems,
    edit_problems,
    edit_values,
    legal_tactics,
    pin_problems,
    plan_edits,
)
from trtplug.report.candidates import Tactics, join_tables
from trtplug.timing.files import CACHE, winners_of
from trtplug.timing.store import Attached, CacheOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.strategy import Caching
    from trtplug.errors import TrtplugError
    from trtplug.report.data import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How engine and log call the same things."""

    names: Mapping[str, Collection[str]]
    """Identity of a table -> further names of it: its engine layer, its ONNX nodes."""
    shown: frozenset[str]
    """Keys whose engine layer has its kernel's name as the log has it."""


def read_naming(
    folder: Path, tables: Sequence[CandidateTable], labels: Mapping[str, str]
) -> Naming:
    """From the engine of a run.

    Args:
        folder: of the run.
        tables: from its log.
        labels: the builder's name of an ONNX node -> its label.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        names[table.identity] |= {labels.get(n, n) for n in table.onnx_layers}
    listing = consume_listing(folder)
    layers = listing.layers if listing else ()
    shown = set()
    for position, table in join_tables(layers, tables).by_layer.items():
        names[table.identity].add(layers[position].name)
        if table.chosen is not None and layers[position].tactic == table.chosen.kernel:
            shown.add(table.key)
    return Naming(names=names, shown=frozenset(shown))


_BYPASS = "tactics were chosen by --pin, --ban or --prefer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the first run gave, and what is made of it."""

    tables: tuple[CandidateTable, ...]
    names: Mapping[str, Collection[str]]
    """Identity of a table -> further names of it."""
    shown: frozenset[str]
    """Keys whose engine layer had its kernel's name as the log has it."""
    edits: tuple[CacheEdit, ...]
    cache: CacheOutcome | None
    """Of the first run."""
    edited: Attached
    """What the second run begins with."""


class TwoPassStrategy(BuildStrategy):
    """Record, edit, build."""

    _caching: Caching
    _recorded: Recorded | None = None

    def first_runs(self) -> tuple[BuilderRun, ...]:
        """The run that records."""
        folder = self._caching.work / f"{self.target.sm}-record"
        folder.mkdir()
        self.expects = 1  # until the recording is there
        name = "recording the tactics of each layer"
        return (BuilderRun(folder=folder, record=True, name=name, number=1, of=2),)

    def next_runs(self, outcome: Outcome) -> tuple[BuilderRun, ...] | None:
        """The builds, from the edited cache.

        Raises:
            TacticUnavailableError: an override that cannot be kept.
        """
        if self._recorded is not None:
            return None
        recorded = self._recorded = self._record(Path(outcome.folder))
        self.expects = len(self.folders)
        file = self._caching.for_child(recorded.edited, self.target)
        count = len(recorded.edits)
        name = f"building with {count} {'tactic' if count == 1 else 'tactics'} changed"
        return tuple(
            BuilderRun(folder=f, timing_cache=file, name=name, number=2, of=2) for f in self.folders
        )

    def _record(self, folder: Path) -> Recorded:
        tables = read_tables(folder / "build.log")
        naming = read_naming(folder, tables, self.context.source.prepared.names)
        edits = plan_edits(tables, self.context.command.policy.overrides, naming.names)
        outcome = self._caching.publish(self._caching.empty(), folder)
        return Recorded(
            tables=tables,
            names=naming.names,
            shown=naming.shown,
            edits=edits,
            cache=outcome,
            edited=self._edited(folder, edits),
        )

    def _edited(self, folder: Path, edits: tuple[CacheEdit, ...]) -> Attached:
        """The recorded cache with the tactics that were asked for."""
        api, file = self._caching.api, folder / CACHE
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
            self._caching.empty(), blob=blob, before=winners_of(values) if values else {}
        )

    def explain_failure(self, outcome: Outcome) -> TrtplugError | None:
        """A builder reports a tactic that it cannot use only when it builds."""
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

    def collect_tactics(self, outcomes: Sequence[Outcome]) -> Tactics:
        """What was recorded.

        Raises:
            TacticUnavailableError: a build's cache has other tactics.
        """
        recorded = self._recorded
        assert recorded is not None
        for outcome in outcomes:
            folder = Path(outcome.folder)
            self._caching.publish(recorded.edited, folder, _BYPASS)
            self._check_kept(recorded.edits, folder)
        return Tactics(
            cache=recorded.cache,
            tables=recorded.tables,
            overridden_by={e.key: e.reason for e in recorded.edits},
        )

    def check_report(self, report: Report) -> None:
        """Compares the engine's tactics with those that were asked for.

        Raises:
            TacticUnavailableError: the builder took others.
        """
        assert self._recorded is not None
        self._check_used(self._recorded, report)
        self._check_pins(self._recorded, report)
        self._check_bans(report)

    def _check_kept(self, edits: tuple[CacheEdit, ...], folder: Path) -> None:
        """In the cache that the build left."""
        after = self._caching.winners(folder)
        if problems := edit_problems(edits, after):
            first = next(e for e in edits if after.get(e.key) != e.tactic_hash)
            raise self._unavailable(first.op, first.key, problems)

    def _check_used(self, recorded: Recorded, report: Report) -> None:
        """In the engine, where the first run showed that it names kernels."""
        used = {(x.cache_key, x.kernel) for x in report.layers}
        lost = [
            e for e in recorded.edits if e.key in recorded.shown and (e.key, e.kernel) not in used
        ]
        if lost:
            problems = (f"{e.kernel} was asked for, no layer of the engine has it" for e in lost)
            raise self._unavailable(lost[0].op, lost[0].key, tuple(problems))

    def _check_pins(self, recorded: Recorded, report: Report) -> None:
        """In the engine, which holds one of a layer's combinations of formats."""
        used = {
            layer.name: (layer.kernel, candidate.tactic_hash)
            for layer in report.layers
            for candidate in layer.candidates
            if candidate.chosen and candidate.tactic_hash is not None
        }
        problems = pin_problems(
            recorded.tables, self.context.command.policy.overrides.pins, recorded.names, used
        )
        for op, problem in problems.items():
            legal = (line for t in recorded.tables if t.op == op for line in legal_tactics(t))
            raise TacticUnavailableError(layer=op, problem=problem, legal=tuple(legal))

    def _check_bans(self, report: Report) -> None:
        """In the engine, by the names that its layers have now."""
        for layer in report.layers:
            kernels = {layer.name: layer.kernel} if layer.kernel is not None else {}
            if problems := ban_problems(self.context.command.policy.overrides.bans, kernels):
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
