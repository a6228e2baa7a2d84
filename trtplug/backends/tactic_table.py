"""Candidate tables: the tactics that the builder tried for one operation, with its own timings.

A cost is what the builder measured for one kernel alone, while it built; it is no time of the
engine. Derived here and nowhere else: the runner-up, the margin to it, and what a near tie is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Tuner = Literal["classic", "compiler"]

NEAR_TIE = 0.05
"""A margin below this is a near tie: trtexec warns of unstable times from a coefficient of
variation of 2.5 % on, and two candidates within twice that may change places in another build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One tactic that was tried."""

    tactic_id: int | None
    cost_ms: float | None
    """As the builder timed it alone."""
    ratio: float | None
    """Cost over that of the fastest, as the builder gives it."""
    correlation: float | None
    """`prediction_correlation`, in the builder's words; it is not documented."""
    kernel: str
    tactic_hash: str
    """`0x` and lower-case hexadecimal digits."""
    parameter: str
    """`tunable_parameter`; empty where there is none."""
    runner: str = ""
    """Of the classic tuner, such as `CaskConvolution`; empty for the compiler's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateTable:
    """All that the log says about one operation."""

    op: str
    key: str
    """Of the timing cache: `0x` and 32 lower-case hexadecimal digits."""
    onnx_layers: tuple[str, ...]
    """ONNX nodes, where the log names them beside the operation."""
    candidates: tuple[Candidate, ...]
    selected: str | None
    """Hash of the tactic that was taken."""
    selected_ms: float | None
    written: str | None
    """Hash that was written to the timing cache."""
    complete: bool
    """Whether all of it was read, and no line of it can be of another table."""
    tuner: Tuner = "compiler"
    """`classic` times convolutions, poolings, reformats and plugins, a table for each combination
    of formats; `compiler` (Myelin) the rest, a table for each operation."""
    formats: str = ""
    """The combination of formats, as the classic tuner prints it, such as
    `Float(784,784,28,1) -> Float(25088,784,28,1)`."""
    cached: bool = False
    """Whether its one candidate was taken from the timing cache, and not timed."""

    @property
    def identity(self) -> str:
        """What tells it from the other tables of a log: its key, or layer and formats without."""
        return self.key or f"{self.op} [{self.formats}]"

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that was taken; None where the table does not list it."""
        return next((c for c in self.candidates if c.tactic_hash == self.selected), None)

    @property
    def runner_up(self) -> Candidate | None:
        """The fastest of the others; None without a chosen one, or where none has a cost."""
        others = [c for c in self.candidates if c.tactic_hash != self.selected]
        timed = [c for c in others if c.cost_ms is not None]
        return min(timed, key=_cost, default=None) if self.chosen else None

    @property
    def margin(self) -> float | None:
        """By which part the runner-up is slower; negative where another than the fastest was taken.

        `runner_up / chosen - 1`; None where either cost is not known.
        """
        chosen, other = self.chosen, self.runner_up
        if chosen is None or other is None or not chosen.cost_ms or other.cost_ms is None:
            return None
        return other.cost_ms / chosen.cost_ms - 1

    @property
    def near_tie(self) -> bool | None:
        """Whether the margin is so small that another build may choose otherwise; None: unknown."""
        return None if self.margin is None else self.margin < NEAR_TIE


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheHit:
    """A tactic that was taken from the timing cache, and not timed."""

    layer: str
    formats: str
    runner: str
    tactic_hash: str
    """`0x` and lower-case hexadecimal digits."""
    cost_ms: float | None
    """As it was timed when the cache was made."""

    def table(self) -> CandidateTable:
        """A table with this one candidate; its kernel is the layer's."""
        candidate = Candidate(
            tactic_id=None,
            cost_ms=self.cost_ms,
            ratio=None,
            correlation=None,
            kernel="",
            tactic_hash=self.tactic_hash,
            parameter="",
            runner=self.runner,
        )
        return CandidateTable(
            op=self.layer,
            key="",
            onnx_layers=(),
            candidates=(candidate,),
            selected=self.tactic_hash,
            selected_ms=self.cost_ms,
            written=None,
            complete=True,
            tuner="classic",
            formats=self.formats,
            cached=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticLog:
    """Everything about tactics in one log."""

    tables: tuple[CandidateTable, ...]
    """In the order in which they begin."""
    hits: tuple[CacheHit, ...]
    """What the classic tuner took from the timing cache, in order."""
    unread: int
    """Rows that could not be read."""
    loose: int
    """Lines whose table is not certain."""
    warnings: tuple[str, ...]
    """What looks like a table or a row and could not be read, each with its line."""


def with_plain_hashes(table: CandidateTable) -> CandidateTable:
    """Hashes without leading zeros, as timing caches give them; a log keeps those of the tuner."""
    return replace(
        table,
        selected=plain_hash(table.selected) if table.selected else None,
        written=plain_hash(table.written) if table.written else None,
        candidates=tuple(
            replace(c, tactic_hash=plain_hash(c.tactic_hash)) for c in table.candidates
        ),
    )


def plain_hash(tactic_hash: str) -> str:
    """`0x00000000000003ea` as `0x3ea`."""
    return f"0x{int(tactic_hash, 16):x}"


def with_winner(table: CandidateTable, tactic_hash: str | None) -> CandidateTable:
    """The same table with another tactic taken."""
    if tactic_hash is None or tactic_hash == table.selected:
        return table
    cost = next((c.cost_ms for c in table.candidates if c.tactic_hash == tactic_hash), None)
    return replace(table, selected=tactic_hash, selected_ms=cost, written=None)


def _cost(candidate: Candidate) -> float:
    return candidate.cost_ms if candidate.cost_ms is not None else float("inf")
