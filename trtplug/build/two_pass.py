"""What a builder left in a target's folder, as data."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import Listing, parse_inspector_json, parse_layer_text
from trtplug.backends.tactic_table import CandidateTable, with_plain_hashes
from trtplug.build.strategy import Course, Pass, builder_refused
from trtplug.errors import TacticUnavailableError
from trtplug.lock.lock import CACHE_FILES
from trtplug.lock.pins import (
    CacheEdit,
    TacticWishes,
    ban_problems,
    edit_problems,
    edit_values,
    legal_tactics,
    pin_problems,
    plan_edits,
)
from trtplug.report.candidates import join_tables
from trtplug.timing.files import CACHE, winners_of
from trtplug.timing.store import Attached, CacheOutcome
from trtplug.timing.transfer import lay_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.backend import Outcome
    from trtplug.build.context import Ground
    from trtplug.build.with_cache import Caching
    from trtplug.bundle.manifest import Agreement, ManifestTarget
    from trtplug.errors import TrtplugError
    from trtplug.plan import PlannedTarget
    from trtplug.report.data import Report
    from trtplug.timing.files import CacheEntry


def take_listing(place: Path) -> Listing | None:
    """The layers, from the builder's log or from the engine inspector; that file stays."""
    text, inspector = place / "layers.txt", place / "inspector.json"
    if text.is_file():
        listing = parse_layer_text(text.read_text(encoding="utf-8"))
        text.unlink()
        return listing
    if inspector.is_file():
        try:
            return parse_inspector_json(inspector.read_text(encoding="utf-8", errors="replace"))
        except ValueError:
            return None  # the report says that there is none
    return None


def read_shipped_cache(place: Path) -> CacheEntry | None:
    """The timing cache that ships beside the engine, where there is one with its sidecar.

    Raises:
        CacheUnusableError: it is not what its sidecar tells of.
    """
    if not all((place / name).is_file() for name in CACHE_FILES):
        return None
    from trtplug.timing.transfer import read_cache

    return read_cache(place / CACHE)


def read_tables(log: Path) -> tuple[CandidateTable, ...]:
    """The candidate tables in a builder's log, and what it took from its timing cache.

    What the log times in one place and takes from the cache in another (a second profile asks for
    all layers again) is both. Most logs of TensorRT-RTX have neither, and are not parsed.
    """
    data = log.read_bytes()
    if b"Autotuning " not in data and b"got cached result" not in data:
        return ()
    from trtplug.backends.trt.tactic_log import parse_tactic_text

    found = parse_tactic_text(data.decode("utf-8", "replace"))
    tables = (*found.tables, *(hit.table() for hit in found.hits))
    return tuple(map(with_plain_hashes, tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How engine and log call the same things."""

    names: Mapping[str, Collection[str]]
    """Identity of a table -> further names of it: its engine layer, its ONNX nodes."""
    shown: frozenset[str]
    """Keys whose engine layer names its kernel in the words of the log."""


def read_naming(
    folder: Path, tables: Sequence[CandidateTable], labels: Mapping[str, str]
) -> Naming:
    """From the engine of a pass.

    Args:
        folder: of the pass.
        tables: from its log.
        labels: the builder's name of an ONNX node -> its label.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for table in tables:
        names[table.identity] |= {labels.get(n, n) for n in table.onnx_layers}
    listing = take_listing(folder)
    layers = listing.layers if listing else ()
    shown = set()
    for position, table in join_tables(layers, tables).by_layer.items():
        names[table.identity].add(layers[position].name)
        if table.chosen is not None and layers[position].tactic == table.chosen.kernel:
            shown.add(table.key)
    return Naming(names=names, shown=frozenset(shown))


_APART = "tactics were chosen by --pin, --ban or --prefer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the first pass gave, and what is made of it."""

    tables: tuple[CandidateTable, ...]
    names: Mapping[str, Collection[str]]
    """Identity of a table -> further names of it."""
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

        tables = read_tables(folder / "build.log")
        naming = read_naming(folder, tables, ground.prepared.names)
        edits = plan_edits(tables, self.wishes, naming.names)
        outcome = self.caching.take(self.caching.empty(), folder)
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
        from trtplug.build.finish import produce_target
        from trtplug.report.candidates import Tactics

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
        self._check_pins(recorded, report)
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

    def _check_pins(self, recorded: Recorded, report: Report) -> None:
        """In the engine, which holds one of a layer's combinations of formats."""
        used = {
            layer.name: (layer.kernel, candidate.tactic_hash)
            for layer in report.layers
            for candidate in layer.candidates
            if candidate.chosen and candidate.tactic_hash is not None
        }
        problems = pin_problems(recorded.tables, self.wishes.pins, recorded.names, used)
        for op, problem in problems.items():
            legal = (line for t in recorded.tables if t.op == op for line in legal_tactics(t))
            raise TacticUnavailableError(layer=op, problem=problem, legal=tuple(legal))

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
