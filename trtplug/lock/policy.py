"""Which tactics a build may use: `--pin`, `--ban`, `--prefer`, `--locked` and the cache options.

Pure. A build that starts with an empty cache records its candidate tables (a hit prints none),
`plan_edits` says which winners to replace, and a second build with the edited cache makes the
engine. An override that cannot be kept is an error, never ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from trtplug.backends.cache_api import CacheValue
from trtplug.errors import OptionUnsupportedError, TacticUnavailableError, UsageError
from trtplug.settings import as_flag, matches_any
from trtplug.timing.accounting import EditReason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from trtplug.backends.backend import Backend
    from trtplug.backends.tactic_table import Candidate, CandidateTable
    from trtplug.lock.lock import Lock


_UNTIMED_MS = 1.0
"""What NVIDIA's own sample writes for a tactic that it forces."""
_SHOWN = 20
"""Layers named where one is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One `--pin LAYER=TACTIC`."""

    layer: str
    """An operation, an engine layer or an ONNX node; exactly as it is called."""
    tactic: str
    """A tactic hash, a kernel name, or a glob of kernel names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticOverrides:
    """All overrides; a pin takes precedence over a preference, and a ban over both."""

    pins: tuple[Pin, ...] = ()
    bans: tuple[str, ...] = ()
    """Globs of kernel names that no layer may use."""
    prefers: tuple[str, ...] = ()
    """Globs of kernel names to take where a layer has any."""


CacheUse = Literal["use", "fresh", "require"]
"""`use`: begin with what the store has, and add to it. `fresh`: begin with an empty cache, and do
not touch the store. `require`: as `use`, and anything but a hit fails the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticPolicy:
    """At most one of overrides and a lock; with either, a cache hit cannot be required."""

    overrides: TacticOverrides = field(default_factory=TacticOverrides)
    cache: CacheUse = "use"
    locked: Path | None = None
    """The lock to replay."""

    @property
    def has_overrides(self) -> bool:
        """Whether any tactic is overridden."""
        return self.overrides != TacticOverrides()

    def check(self) -> None:
        """Rejects conflicting options.

        Raises:
            UsageError: for a conflict.
        """
        if self.locked is not None and self.has_overrides:
            raise UsageError(
                "--locked replays a lock as it is, so --pin, --ban and --prefer cannot apply",
                "leave out --locked to record a new lock with them",
            )
        if self.cache == "require" and (self.has_overrides or self.locked is not None):
            raise UsageError(
                "--require-cache needs the store's timing cache, which this build does not use",
                "--pin, --ban and --prefer time every tactic anew; --locked brings its own cache",
            )

    def as_flags(self) -> dict[str, str]:
        """The overrides as text, for plan, report and lock."""
        overrides = self.overrides
        pins = sorted(f"{pin.layer}={pin.tactic}" for pin in overrides.pins)
        given = {"pin": pins, "ban": overrides.bans, "prefer": overrides.prefers}
        return {name: as_flag(words, OVERRIDE_SEPARATOR) for name, words in given.items() if words}


OVERRIDE_SEPARATOR = "; "

OVERRIDE_FLAGS = ("pin", "ban", "prefer")
"""Names in `as_flags`; a lock that is replayed brings its own."""

TIMING_CACHES = "timing-caches"
"""Folder below the store."""


def check_policy(policy: TacticPolicy, backend: Backend) -> None:
    """Rejects conflicting options, and those that the backend lacks.

    Raises:
        UsageError: conflicting options.
        OptionUnsupportedError: the backend has no timing cache.
    """
    policy.check()
    if backend.capabilities().timing_cache:
        return
    options = [f"--{name}" for name in OVERRIDE_FLAGS if getattr(policy.overrides, f"{name}s")]
    options += ["--require-cache"] if policy.cache == "require" else []
    if options:
        raise OptionUnsupportedError(
            option=options[0],
            backend=backend.name,
            version=backend.version() or "",
            advice="tactics are chosen through the timing cache of enterprise TensorRT: "
            "--backend trt",
        )


def open_lock(policy: TacticPolicy) -> Lock | None:
    """The lock of `--locked`; None without one.

    Raises:
        DocumentError: it cannot be read.
    """
    from trtplug.lock.lock import read_lock

    return None if policy.locked is None else read_lock(policy.locked)


def override_flags(lock: Lock) -> dict[str, str]:
    """Flags of the overrides that a lock was made with: its tactics hold them already."""
    return {name: lock.flags[name] for name in OVERRIDE_FLAGS if name in lock.flags}


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEdit:
    """One winner to replace."""

    key: str
    op: str
    tactic_hash: str
    kernel: str
    cost_ms: float | None
    replaces: str
    """Hash of the winner that the builder took."""
    reason: EditReason


def parse_pin(text: str) -> Pin:
    """`LAYER=TACTIC`, split at the last `=`, since layer names may hold any.

    Raises:
        UsageError: one of the two is missing.
    """
    layer, equals, tactic = text.rpartition("=")
    if not (layer and equals and tactic.strip()):
        raise UsageError(
            f"--pin {text!r} is not LAYER=TACTIC",
            "a tactic is a hash such as 0x665ded9abbf88, or a kernel's name",
        )
    return Pin(layer=layer, tactic=tactic.strip())


def plan_edits(
    tables: Sequence[CandidateTable],
    overrides: TacticOverrides,
    names: Mapping[str, Collection[str]],
) -> tuple[CacheEdit, ...]:
    """The edits that make a build honour the overrides; empty where it does already.

    Among the tactics that an override leaves, the fastest is taken.

    Args:
        tables: of the build that recorded them; of those of one identity, the last one counts.
        overrides: what was asked for.
        names: identity of a table -> further names of it: engine layers, ONNX nodes.

    Raises:
        TacticUnavailableError: an override that cannot be kept.
    """
    latest = {table.identity: table for table in tables}
    pinned = _pinned(latest, overrides.pins, names)
    _check_prefers(latest.values(), overrides.prefers)
    edits = (_edit(t, pinned.get(name), overrides) for name, t in latest.items() if t.candidates)
    return tuple(edit for edit in edits if edit is not None)


def edit_values(edits: Sequence[CacheEdit]) -> dict[str, CacheValue]:
    """Edits as the timing cache takes them."""
    return {
        edit.key: CacheValue(
            tactic_hash=edit.tactic_hash,
            time_ms=_UNTIMED_MS if edit.cost_ms is None else edit.cost_ms,
        )
        for edit in edits
    }


def edit_problems(edits: Sequence[CacheEdit], after: Mapping[str, str]) -> tuple[str, ...]:
    """Edits that the second build did not keep, one sentence each.

    Args:
        edits: that the cache was given.
        after: key -> tactic hash, of the cache after the build.
    """
    return tuple(
        f"{edit.op}: {edit.tactic_hash} ({edit.kernel}) was requested, "
        f"the build took {after.get(edit.key, 'none')}"
        for edit in edits
        if after.get(edit.key) != edit.tactic_hash
    )


def pin_problems(
    tables: Sequence[CandidateTable],
    pins: Sequence[Pin],
    names: Mapping[str, Collection[str]],
    used: Mapping[str, tuple[str | None, str]],
) -> dict[str, str]:
    """Layers of the finished engine that have another tactic than their pin, each with the problem.

    A pin changes what wins for one combination of formats; the builder may hold another one.

    Args:
        tables: of the build that recorded them.
        pins: what was asked for.
        names: as `plan_edits` takes them.
        used: engine layer -> kernel, and hash of the tactic, where they are known for certain.
    """
    latest = {table.identity: table for table in tables}
    return {
        table.op: f"{pin.tactic} was asked for, the engine holds {used[table.op][1]} "
        f"({used[table.op][0]}), with other formats"
        for pin in pins
        for table in _tables_of(pin.layer, latest, names)
        if table.op in used and not is_tactic(pin.tactic, *used[table.op])
    }


def ban_problems(bans: Sequence[str], kernels: Mapping[str, str]) -> tuple[str, ...]:
    """Layers of the finished engine that use a banned kernel, though the log had none.

    Args:
        bans: globs.
        kernels: engine layer -> kernel, where the builder names it.
    """
    return tuple(
        f"{layer}: uses {kernel}, which is banned"
        for layer, kernel in kernels.items()
        if matches_any(kernel, bans)
    )


def _pinned(
    tables: Mapping[str, CandidateTable],
    pins: Sequence[Pin],
    names: Mapping[str, Collection[str]],
) -> dict[str, Pin]:
    """Identity of a table -> its pin.

    A layer may have several: one for each combination of formats, or of operations with one name.
    Those that have the tactic are pinned; which of them the engine holds shows when it is built.
    """
    pinned: dict[str, Pin] = {}
    for pin in pins:
        found = _tables_of(pin.layer, tables, names)
        for table in _with_tactic(pin, found):
            before = pinned.setdefault(table.identity, pin)
            if before.tactic != pin.tactic:
                problem = f"it is pinned to both {before.tactic} and {pin.tactic}"
                raise _unavailable(table, problem)
    return pinned


def _with_tactic(pin: Pin, tables: Sequence[CandidateTable]) -> list[CandidateTable]:
    having = [
        table
        for table in tables
        if any(is_tactic(pin.tactic, c.kernel, c.tactic_hash) for c in table.candidates)
    ]
    if having:
        return having
    legal = tuple(dict.fromkeys(line for table in tables for line in legal_tactics(table)))
    problem = f"it has no tactic {pin.tactic}"
    if not legal:
        problem = f"the log lists none of its tactics, so {pin.tactic} cannot be pinned"
    raise TacticUnavailableError(layer=tables[0].op, problem=problem, legal=legal)


def _tables_of(
    layer: str, tables: Mapping[str, CandidateTable], names: Mapping[str, Collection[str]]
) -> list[CandidateTable]:
    found = [t for t in tables.values() if t.op == layer]
    found = found or [
        t for n, t in tables.items() if layer in t.onnx_layers or layer in names.get(n, ())
    ]
    if not found:
        known = tuple(dict.fromkeys(t.op for t in tables.values()))
        more = (f"and {len(known) - _SHOWN} more",) if len(known) > _SHOWN else ()
        raise TacticUnavailableError(
            layer=layer,
            problem="the build tried no tactics for a layer of that name",
            legal=known[:_SHOWN] + more,
        )
    return found


def _check_prefers(tables: Collection[CandidateTable], prefers: Sequence[str]) -> None:
    for glob in prefers:
        if not any(_matches(c, (glob,)) for table in tables for c in table.candidates):
            raise TacticUnavailableError(
                layer="--prefer",
                problem=f"no layer has a kernel that matches {glob!r}",
                legal=(),
            )


def _edit(table: CandidateTable, pin: Pin | None, overrides: TacticOverrides) -> CacheEdit | None:
    taken, reason = _wanted(table, pin, overrides)
    if taken is None or taken.tactic_hash == table.selected:
        return None
    if not table.complete or table.selected is None:
        raise _unavailable(table, "its table in the log is incomplete, so no tactic is certain")
    if not table.key:
        raise _unavailable(table, "the log names no key of the timing cache for it")
    return CacheEdit(
        key=table.key,
        op=table.op,
        tactic_hash=taken.tactic_hash,
        kernel=taken.kernel,
        cost_ms=taken.cost_ms,
        replaces=table.selected,
        reason=reason,
    )


def _wanted(
    table: CandidateTable, pin: Pin | None, overrides: TacticOverrides
) -> tuple[Candidate | None, EditReason]:
    """The candidate that the overrides select; None where they leave the builder's own choice."""
    allowed = [c for c in table.candidates if not _matches(c, overrides.bans)]
    if pin is not None:
        return _pinned_candidate(table, pin, allowed), "pin"
    preferred = [c for c in allowed if _matches(c, overrides.prefers)]
    if preferred:
        return _keep_or_fastest(table, preferred), "prefer"
    if len(allowed) == len(table.candidates):
        return None, "ban"
    if not allowed:
        raise _unavailable(table, f"--ban {' '.join(overrides.bans)} leaves it no tactic")
    return _keep_or_fastest(table, allowed), "ban"


def _pinned_candidate(table: CandidateTable, pin: Pin, allowed: Sequence[Candidate]) -> Candidate:
    named = [c for c in table.candidates if is_tactic(pin.tactic, c.kernel, c.tactic_hash)]
    if not named:
        raise _unavailable(table, f"it has no tactic {pin.tactic}")
    found = [c for c in named if c in allowed]
    if not found:
        raise _unavailable(table, f"{pin.tactic} is pinned and banned")
    return _keep_or_fastest(table, found)


def _keep_or_fastest(table: CandidateTable, candidates: Sequence[Candidate]) -> Candidate:
    """The builder's own choice where it is among them; else the fastest, untimed ones last."""
    own = [c for c in candidates if c.tactic_hash == table.selected]
    return min(own or candidates, key=lambda c: (c.cost_ms is None, c.cost_ms or 0.0))


def is_tactic(wanted: str, kernel: str | None, tactic_hash: str) -> bool:
    """Whether a tactic is what a pin wants.

    Args:
        wanted: a hash, a kernel's name, or a glob of names.
        kernel: of the tactic; None where it is not known.
        tactic_hash: of the tactic.
    """
    if wanted.lower().startswith("0x"):
        try:
            return int(tactic_hash, 16) == int(wanted, 16)
        except ValueError:
            return False
    return kernel is not None and matches_any(kernel, (wanted,))


def _unavailable(table: CandidateTable, problem: str) -> TacticUnavailableError:
    return TacticUnavailableError(layer=table.op, problem=problem, legal=legal_tactics(table))


def _matches(candidate: Candidate, globs: Sequence[str]) -> bool:
    """A plugin's tactics and those of reformats have numbers, and no kernel's name."""
    return bool(candidate.kernel) and matches_any(candidate.kernel, globs)


def legal_tactics(table: CandidateTable) -> tuple[str, ...]:
    """What the layer may be pinned to, a line each: hash, time and kernel."""
    costs = (
        "not timed" if c.cost_ms is None else f"{c.cost_ms * 1000:.3f} us" for c in table.candidates
    )
    return tuple(
        f"{c.tactic_hash}  {cost}  {c.kernel or c.runner}"
        for c, cost in zip(table.candidates, costs, strict=True)
    )
