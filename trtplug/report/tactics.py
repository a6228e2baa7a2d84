"""What is known of a build's tactics beside its own log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from trtplug.backends.tactic_table import CandidateTable, with_winner
from trtplug.engine.pins import EditReason
from trtplug.engine.timing_cache import CacheOutcome

if TYPE_CHECKING:
    from trtplug.engine.cache_files import CacheEntry
    from trtplug.report.report import SelectedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Tactics:
    """From earlier passes, the timing cache, and what was asked for."""

    cache: CacheOutcome | None = None
    """What the build did with its timing cache; None where the builder has none."""
    tables: tuple[CandidateTable, ...] = ()
    """Of an earlier pass or a lock; a table in the build's own log counts more."""
    asked_by: Mapping[str, EditReason] = field(default_factory=dict)
    """Cache key -> the wish that overruled the builder."""
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
        return dict(self.asked_by)
