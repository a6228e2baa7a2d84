"""Candidate tables of the builder's log joined with the layers of its engine.

The log names operations, the engine names layers; what joins them are ONNX nodes, names, formats
and the tactic that both report. A table that fits several layers, or none, is kept apart and says
so: a wrong join would have someone pin the wrong tactic.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import starmap
from typing import TYPE_CHECKING

from trtplug.backends.layer_listing import profile_of, without_profile
from trtplug.backends.tactic_table import CandidateTable, plain_hash, with_winner
from trtplug.report.data import ReportCandidate, ReportCandidateTable, ReportTimingCache, SelectedBy
from trtplug.timing.accounting import EditReason
from trtplug.timing.store import CacheOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trtplug.backends.layer_listing import EngineLayer, LayerTensor
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
    hits: int | None = None
    """How many keys the build's log says were taken from the cache; None where it says of none."""

    def with_log(self, logged: tuple[CandidateTable, ...], cached: CacheEntry | None) -> Tactics:
        """The same with the tables of the build's own log, and the winners that its cache holds."""
        latest = {table.identity: table for table in (*self.tables, *logged)}
        timed = {(t.op, t.formats) for t in latest.values() if not t.cached}
        # A lock knows no formats.
        known = timed | {(t.op, t.formats) for t in latest.values() if (t.op, "") in timed}
        tables = [t for t in latest.values() if not t.cached or (t.op, t.formats) not in known]
        if cached is not None:
            tables = [_as_cached(table, cached.sidecar.winners) for table in tables]
        return replace(self, tables=tuple(tables), hits=_count_hits(logged))

    def selected_by(self) -> dict[str, SelectedBy]:
        """Cache key -> who decided its tactic, where it was not the builder."""
        if self.locked:
            return {table.key: "lock" for table in self.tables}
        return dict(self.overridden_by)


def _count_hits(logged: tuple[CandidateTable, ...]) -> int | None:
    """Keys that were taken from the cache that the build began with.

    The compiler says nothing of its hits. What a further profile finds was timed in this build, or
    is one key with the first profile's.
    """
    timed = {(t.op, t.formats) for t in logged if not t.cached}
    found = {(without_profile(t.op), t.formats) for t in logged if t.cached}
    return len(found - timed) or None


def _as_cached(table: CandidateTable, winners: Mapping[str, str]) -> CandidateTable:
    """With the winner that the cache holds; a key that it lacks is no key (level 0 keeps none)."""
    if table.key in winners:
        return with_winner(table, winners[table.key])
    return replace(table, key="")


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
    """Finds the one layer of each table; of tables of one identity the last one counts.

    The classic tuner has a table for each combination of formats: that of the combination which the
    engine holds is joined. The others of that layer, what reformats would have cost, and the line
    that stands for a whole operation of the compiler are no layers' and are left out.
    """
    latest = {table.identity: table for table in tables}
    fits = {name: list(_fitting(layers, table)) for name, table in latest.items()}
    wanted: dict[int, list[str]] = defaultdict(list)
    for name, positions in fits.items():
        if len(positions) == 1:
            wanted[positions[0]].append(name)
    by_layer = {layer: latest[names[0]] for layer, names in wanted.items() if len(names) == 1}
    several = {layer: [latest[n] for n in names] for layer, names in wanted.items()}
    by_layer |= dict(_settled(layers, by_layer, several))
    joined = {table.identity for table in by_layer.values()}
    ops = {table.op for table in by_layer.values() if table.tuner == "classic"}
    apart = tuple(
        (table, _why(fits[name]))
        for name, table in latest.items()
        if name not in joined and not _is_passed_over(table, ops)
    )
    return Joined(by_layer=by_layer, apart=apart)


def _settled(
    layers: Sequence[EngineLayer],
    by_layer: Mapping[int, CandidateTable],
    several: Mapping[int, Sequence[CandidateTable]],
) -> Iterator[tuple[int, CandidateTable]]:
    """Tables of layers that several fit, told apart by the formats of their neighbours.

    The builder gives no strides, and often the type alone; what a joined table says of a tensor
    holds for the layer on its other side too.
    """
    known: dict[str, str] = {}
    for position, table in by_layer.items():
        known.update(_formats_of(layers[position], table))
    for position, tables in several.items():
        if len(tables) < 2 or tables[0].tuner != "classic":
            continue
        agreeing = [
            table
            for table in tables
            if all(known.get(n, f) == f for n, f in _formats_of(layers[position], table))
        ]
        if len(agreeing) == 1:
            yield position, agreeing[0]


def _formats_of(layer: EngineLayer, table: CandidateTable) -> Iterator[tuple[str, str]]:
    """Names of a layer's tensors with the formats that a table has for them."""
    if table.tuner == "classic":
        read, _, written = table.formats.partition(" where ")[0].partition(" -> ")
        for tensors, combination in ((layer.inputs, read), (layer.outputs, written)):
            yield from zip((t.name for t in tensors), _parts(combination), strict=False)


_WHOLE_OPERATION = "Myelin"
_REFORMAT = re.compile(r"Optimizer Reformat\((?P<source>.*) -> (?P<result>.*)\)")


def _is_passed_over(table: CandidateTable, joined_ops: set[str]) -> bool:
    if table.tuner != "classic":
        return False
    whole = any(row.runner == _WHOLE_OPERATION for row in table.candidates)
    reformat = _REFORMAT.fullmatch(table.op) is not None
    return whole or reformat or table.cached or table.op in joined_ops


def _fitting(layers: Sequence[EngineLayer], table: CandidateTable) -> Iterator[int]:
    """Positions of layers that may be the table's."""
    fits = _is_classic if table.tuner == "classic" else _is_named
    for position, layer in enumerate(layers):
        if fits(layer, table) and _is_its_kernel(layer, table):
            yield position


def _is_classic(layer: EngineLayer, table: CandidateTable) -> bool:
    """Whether name, tactic and formats are the layer's, as far as it tells them."""
    reformat = _REFORMAT.fullmatch(table.op)
    if not table.candidates or (reformat is None and table.op != layer.name):
        return False  # a combination of formats that no tactic takes is in no engine
    if reformat is not None and not _is_reformat(layer, reformat):
        return False
    if layer.tactic_value and table.selected and layer.tactic_value != plain_hash(table.selected):
        return False
    read, arrow, written = table.formats.partition(" where ")[0].partition(" -> ")
    return not arrow or (_agree(layer.inputs, read) and _agree(layer.outputs, written))


def _is_reformat(layer: EngineLayer, match: re.Match[str]) -> bool:
    """`Optimizer Reformat(x -> <out>)` copies x, or what `<in>` stands for, to y."""
    if layer.type != "Reformat" or len(layer.inputs) != 1 or len(layer.outputs) != 1:
        return False
    if match["source"] == "<in>":
        return layer.outputs[0].name == match["result"]
    return layer.inputs[0].name == match["source"]


def _agree(tensors: Sequence[LayerTensor], combination: str) -> bool:
    """Whether tensors may have the formats that the log prints, `Half(784,1:8,28,1)`, in order."""
    parts = list(_parts(combination))
    if len(parts) != len(tensors):
        return True  # shape tensors are in one of the two alone
    return all(starmap(_has_format, zip(tensors, parts, strict=True)))


def _parts(combination: str) -> Iterator[str]:
    """At the commas that no bracket holds: strides may be expressions."""
    depth, start = 0, 0
    for position, character in enumerate(combination):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield combination[start:position].strip()
            start = position + 1
    yield combination[start:].strip()


def _has_format(tensor: LayerTensor, part: str) -> bool:
    dtype, _, strides = part.removesuffix(")").partition("(")
    if tensor.dtype not in ("unknown", dtype):
        return False
    together = re.search(r":(\d+)", strides)
    words = tensor.format.lower()
    if every := re.search(r"% (\d+) == 0", words):
        return together is not None and together[1] == every[1]
    if "linear" in words:
        axes = list(_parts(strides))
        return together is None and not (len(axes) > 2 and axes[1] == "1" != axes[-1])
    return True


def _is_named(layer: EngineLayer, table: CandidateTable) -> bool:
    if layer.profile != (profile_of(table.op) or 0):
        return False
    if table.onnx_layers:
        return set(table.onnx_layers) <= set(layer.onnx_layers)
    names = (layer.name, _SUFFIX.sub("", layer.name), *layer.onnx_layers)
    return table.op in names


def _is_its_kernel(layer: EngineLayer, table: CandidateTable) -> bool:
    """Whether the layer's kernel is the one that the table chose, as far as the layer names it."""
    if not layer.tactic or _STUB in layer.tactic or table.chosen is None:
        return True
    # Plugins and reformats have no kernel in the log: there the number tells.
    return not table.chosen.kernel or layer.tactic == table.chosen.kernel


def _why(positions: Sequence[int]) -> str:
    if not positions:
        return "no layer of the engine has its nodes and its kernel"
    if len(positions) > 1:
        return f"{len(positions)} layers have its nodes and its kernel"
    return "another table fits the same layer"


def report_candidates(
    table: CandidateTable, kernel: str | None = None
) -> tuple[ReportCandidate, ...]:
    """Rows of the report, the fastest first, untimed ones last.

    Args:
        table: one.
        kernel: what its layer calls the tactic that was taken; None where that is not known.
    """
    ordered = sorted(table.candidates, key=lambda c: (c.cost_ms is None, c.cost_ms or 0.0))
    fastest = next((c.cost_ms for c in ordered if c.cost_ms), None)
    return tuple(_candidate(c, fastest, table, kernel) for c in ordered)


def _candidate(
    candidate: Candidate, fastest_ms: float | None, table: CandidateTable, kernel: str | None
) -> ReportCandidate:
    cost, chosen = candidate.cost_ms, candidate.tactic_hash == table.selected
    numbered = f"{candidate.runner} {int(candidate.tactic_hash, 16)}"
    return ReportCandidate(
        kernel=candidate.kernel or (kernel if chosen and kernel else numbered),
        time_us=None if cost is None else cost * 1000,
        ratio=None if cost is None or fastest_ms is None else cost / fastest_ms,
        tactic_hash=candidate.tactic_hash,
        chosen=chosen,
        timed_by=None if cost is None else "cache" if table.cached else "builder",
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


def report_timing_cache(
    outcome: CacheOutcome | None, logged_hits: int | None = None
) -> ReportTimingCache | None:
    """What the build and its cache did for each other, as the report has it.

    Args:
        outcome: of the cache; None where the builder has none.
        logged_hits: how many keys the log says were taken from it; None where it says nothing.
    """
    if outcome is None:
        return None
    accounting = outcome.accounting
    return ReportTimingCache(
        word=outcome.word,
        reason=outcome.reason,
        set_aside=outcome.quarantined,
        keys_before=accounting.before,
        keys_after=accounting.after,
        hits=logged_hits if accounting.hits is None else accounting.hits,
        misses=len(accounting.new),
        lost=len(accounting.lost),
        changed=len(accounting.changed),
        sha256=outcome.sha256,
    )
