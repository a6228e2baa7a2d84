"""Candidate tables of the builder's log joined with the layers of its engine.

The log names operations, the engine names layers; what joins them are ONNX nodes, names and the
kernel that both report. A table that fits several layers, or none, is kept apart and says so: a
wrong join would have someone pin the wrong tactic.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import CandidateTable, with_winner
from trtplug.report.data import ReportCandidate, ReportCandidateTable, ReportTimingCache, SelectedBy
from trtplug.timing.accounting import EditReason
from trtplug.timing.store import CacheOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.backends.layer_listing import EngineLayer
    from trtplug.backends.tactic_table import Candidate
    from trtplug.timing.files import CacheEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Tactics:
    """From earlier runs, the timing cache, and what was asked for."""

    cache: CacheOutcome | None = None
    """What the build did with its timing cache; None where the builder has none."""
    tables: tuple[CandidateTable, ...] = ()
    """Of an earlier run or a lock; a table in the build's own log counts more."""
    overridden_by: Mapping[str, EditReason] = field(default_factory=dict)
    """Cache key -> the option that overrode the builder."""
    locked: bool = False
    """Whether a lock was replayed, so that no tactic is the builder's choice."""
    warnings: tuple[str, ...] = ()

    def with_log(self, logged: tuple[CandidateTable, ...], cached: CacheEntry | None) -> Tactics:
        """The same with the tables of the build's own log, and the winners that its cache holds."""
        latest = {table.key: table for table in (*self.tables, *logged)}
        winners = cached.sidecar.winners if cached else {}
        tables = (with_winner(t, winners.get(t.key, t.selected)) for t in latest.values())
        return replace(self, tables=tuple(tables))

    def selected_by(self) -> dict[str, SelectedBy]:
        """Cache key -> who decided its tactic, where it was not the builder."""
        if self.locked:
            return {table.key: "lock" for table in self.tables}
        return dict(self.overridden_by)


_SUFFIX = re.compile(r"_myl\d+_\d+$")
"""What the compiler puts behind an operation's name to call the layer."""

_STUB = "STUB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """Tables by the position of their layer, and those that have none."""

    by_layer: Mapping[int, CandidateTable]
    apart: tuple[tuple[CandidateTable, str], ...]
    """Each with the reason."""


NO_TABLES = Joined(by_layer={}, apart=())


def join_tables(layers: Sequence[EngineLayer], tables: Sequence[CandidateTable]) -> Joined:
    """Finds the one layer of each table; where a key has several tables, the last one counts."""
    latest = {table.key: table for table in tables}
    fits = {key: list(_fitting(layers, table)) for key, table in latest.items()}
    wanted: dict[int, list[str]] = defaultdict(list)
    for key, positions in fits.items():
        if len(positions) == 1:
            wanted[positions[0]].append(key)
    by_layer = {layer: latest[keys[0]] for layer, keys in wanted.items() if len(keys) == 1}
    joined = {table.key for table in by_layer.values()}
    apart = tuple((table, _why(fits[key])) for key, table in latest.items() if key not in joined)
    return Joined(by_layer=by_layer, apart=apart)


def _fitting(layers: Sequence[EngineLayer], table: CandidateTable) -> Iterator[int]:
    """Positions of layers that may be the table's."""
    for position, layer in enumerate(layers):
        if _is_named(layer, table) and _is_its_kernel(layer, table):
            yield position


def _is_named(layer: EngineLayer, table: CandidateTable) -> bool:
    if table.onnx_layers:
        return set(table.onnx_layers) <= set(layer.onnx_layers)
    names = (layer.name, _SUFFIX.sub("", layer.name), *layer.onnx_layers)
    return table.op in names


def _is_its_kernel(layer: EngineLayer, table: CandidateTable) -> bool:
    """Whether the layer's kernel is the one that the table chose, as far as the layer names it."""
    if not layer.tactic or _STUB in layer.tactic or table.chosen is None:
        return True
    return layer.tactic == table.chosen.kernel


def _why(positions: Sequence[int]) -> str:
    if not positions:
        return "no layer of the engine has its nodes and its kernel"
    if len(positions) > 1:
        return f"{len(positions)} layers have its nodes and its kernel"
    return "another table fits the same layer"


def report_candidates(table: CandidateTable) -> tuple[ReportCandidate, ...]:
    """Rows of the report, the fastest first, untimed ones last."""
    ordered = sorted(table.candidates, key=lambda c: (c.cost_ms is None, c.cost_ms or 0.0))
    fastest = next((c.cost_ms for c in ordered if c.cost_ms), None)
    return tuple(_candidate(c, fastest, table.selected) for c in ordered)


def _candidate(
    candidate: Candidate, fastest_ms: float | None, selected: str | None
) -> ReportCandidate:
    cost = candidate.cost_ms
    return ReportCandidate(
        kernel=candidate.kernel,
        time_us=None if cost is None else cost * 1000,
        ratio=None if cost is None or fastest_ms is None else cost / fastest_ms,
        tactic_hash=candidate.tactic_hash,
        chosen=candidate.tactic_hash == selected,
        timed_by=None if cost is None else "builder",
    )


def unjoined_candidates(
    joined: Joined, names: Mapping[str, str], selected_by: Mapping[str, SelectedBy]
) -> tuple[ReportCandidateTable, ...]:
    """Tables without a layer.

    Args:
        joined: all tables.
        names: the builder's name of an ONNX node -> its label.
        selected_by: cache key -> who decided its tactic, where it was not the builder.
    """
    return tuple(
        ReportCandidateTable(
            op=table.op,
            cache_key=table.key,
            onnx_nodes=tuple(names.get(n, n) for n in table.onnx_layers),
            candidates=report_candidates(table),
            margin=table.margin,
            near_tie=None if table.key in selected_by else table.near_tie,
            selected_by=selected_by.get(table.key, "builder"),
            why=why,
        )
        for table, why in joined.apart
        if table.candidates
    )


def report_timing_cache(outcome: CacheOutcome | None) -> ReportTimingCache | None:
    """What the build and its cache did for each other, as the report has it."""
    if outcome is None:
        return None
    accounting = outcome.accounting
    return ReportTimingCache(
        word=outcome.word,
        reason=outcome.reason,
        set_aside=outcome.quarantined,
        keys_before=accounting.before,
        keys_after=accounting.after,
        hits=accounting.hits,
        misses=len(accounting.new),
        lost=len(accounting.lost),
        changed=len(accounting.changed),
        sha256=outcome.sha256,
    )
