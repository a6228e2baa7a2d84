"""The store of timing caches: one entry for each identity, shared by all processes of a machine.

A build attaches what `attach` gives, and hands what it ends with to `publish`. Nothing that is
foreign, damaged, of another version or refused by TensorRT is ever attached: it is quarantined
under a name that says why. `publish` merges under a lock, by TensorRT's own combine, so that
processes that build at once lose no entry of each other.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.cache_api import CacheValue
from trtplug.errors import OutputError
from trtplug.store import as_output_error
from trtplug.timing.accounting import Accounting, CacheWord, account, cache_word
from trtplug.timing.files import (
    CURRENT,
    CacheBuild,
    CacheEntry,
    Flawed,
    make_sidecar,
    read_entry,
    read_values,
    winners_of,
    write_entry,
)
from trtplug.timing.identity import CacheIdentity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from trtplug.backends.cache_api import TimingCacheApi

_log = logging.getLogger(__name__)


_LONGEST_WAIT_S = 600.0
"""For another process's merge, which takes less than a second."""
_POLL_S = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """What a build starts from."""

    identity: CacheIdentity
    blob: bytes | None
    """The cache to attach; None to start with an empty one."""
    before: Mapping[str, str]
    """Key -> tactic hash of the blob."""
    rejected: str
    """Why what was there is not attached; empty where it is, or where there was nothing."""
    quarantined: str | None
    """Name under which the rejected one was kept, below the store's `set-aside`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOutcome:
    """What a build and its cache did for each other; goes into the report."""

    word: CacheWord
    reason: str
    """Why it was rejected, or could not be merged; empty otherwise."""
    quarantined: str | None
    accounting: Accounting
    sha256: str | None
    """Of what the store holds now; None where the build's cache was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Combined:
    """Two caches in one."""

    blob: bytes
    values: Mapping[str, CacheValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingCacheStore:
    """A folder of entries; safe to share between processes."""

    root: Path

    def folder(self, identity: CacheIdentity) -> Path:
        """Where the entry of an identity lies."""
        return self.root / "entries" / identity.entry_id

    def attach(self, identity: CacheIdentity, api: TimingCacheApi) -> Attached:
        """The cache for a build, checked by us and by TensorRT; a broken store gives none."""
        found = self._read(identity, api)
        quarantined = None
        if isinstance(found, Flawed):
            # Where the store cannot be written, what is flawed stays, and is not attached either.
            try:
                with self.locked(identity.entry_id):
                    # Another process may have set it right since.
                    found = self._read(identity, api)
                    if isinstance(found, Flawed):
                        quarantined = self.quarantine(identity.entry_id, found)
            except OutputError as error:
                _log.info("timing cache %s stays where it is: %s", identity.entry_id, error.problem)
        if isinstance(found, Flawed):
            _log.info("timing cache %s is not attached: %s", identity.entry_id, found)
        else:
            state = "attached" if found else "not there: the build begins with an empty one"
            _log.info("timing cache %s is %s", identity.entry_id, state)
        entry = found if isinstance(found, CacheEntry) else None
        return Attached(
            identity=identity,
            blob=entry.blob if entry else None,
            before=entry.sidecar.winners if entry else {},
            rejected=str(found) if isinstance(found, Flawed) else "",
            quarantined=quarantined,
        )

    def publish(
        self,
        attached: Attached,
        api: TimingCacheApi,
        made: bytes,
        *,
        model_sha256: str,
        asked: Collection[str] | None = None,
    ) -> CacheOutcome:
        """Merges the cache that a build ended with into the store, and says what the build did.

        Args:
            attached: what the build began with.
            api: the builder's own operations.
            made: the build's cache, with what was attached still in it. Not one with edited
                winners: those are a choice of that build, and no measurement.
            model_sha256: of the model that was built, for the record.
            asked: keys that the build asked for, where the log lists them.

        Raises:
            OutputError: the store cannot be written.
        """
        values = api.read(made)
        outcome = _outcome(attached, values, asked)
        if values is None:
            return outcome
        build = _build(outcome, model_sha256)
        with self.locked(attached.identity.entry_id):
            sha256, problem, moved = self._merge(attached.identity, api, made, values, build)
        return dataclasses.replace(
            outcome,
            reason=attached.rejected or problem,
            quarantined=attached.quarantined or moved,
            sha256=sha256,
        )

    def _read(self, identity: CacheIdentity, api: TimingCacheApi) -> CacheEntry | Flawed | None:
        found = read_entry(self.folder(identity), identity)
        if not isinstance(found, CacheEntry):
            return found
        values = read_values(found, api)
        return values if isinstance(values, Flawed) else found

    def _merge(
        self,
        identity: CacheIdentity,
        api: TimingCacheApi,
        made: bytes,
        values: Mapping[str, CacheValue],
        build: CacheBuild,
    ) -> tuple[str | None, str, str | None]:
        """Digest of what the store holds then; a problem; what was quarantined."""
        found, moved = self._read(identity, api), None
        if isinstance(found, Flawed):
            moved, found = self.quarantine(identity.entry_id, found), None
        merged: Combined | None = Combined(blob=made, values=values)
        if found is not None:
            merged = _with_new(api, found, made, values)
        if merged is None:
            # What the store has stays; nothing of either is lost.
            moved = self._quarantine_made(identity, made)
            _log.info("timing cache %s stays as it is: see %s", identity.entry_id, moved)
            return None, "TensorRT does not combine the build's cache with the store's", moved
        builds = found.sidecar.builds if found else ()
        sidecar = make_sidecar(identity, merged.blob, merged.values, (*builds, build))
        write_entry(self.folder(identity), CacheEntry(sidecar=sidecar, blob=merged.blob))
        return sidecar.sha256, "", moved

    def quarantine(self, entry_id: str, flawed: Flawed) -> str:
        """Moves an entry's files away, under the entry's lock; the name says why."""
        folder, away = self.root / "entries" / entry_id, self._away(entry_id, flawed.flaw)
        # The sidecar first: without it there is no entry.
        files = sorted(folder.iterdir(), key=lambda f: f.name != CURRENT)
        for file in files:
            file.rename(away / file.name)
        return away.name

    def _quarantine_made(self, identity: CacheIdentity, made: bytes) -> str:
        away = self._away(identity.entry_id, "uncombined")
        (away / "made.cache").write_bytes(made)
        return away.name

    def _away(self, entry_id: str, why: str) -> Path:
        away = self.root / "set-aside" / f"{entry_id}.{why}.{secrets.token_hex(4)}"
        away.mkdir(parents=True)
        return away

    @contextlib.contextmanager
    def locked(self, entry_id: str) -> Iterator[None]:
        """Alone with one entry; a lock whose process dies is free again.

        Raises:
            OutputError: the store cannot be written, or another process holds the lock for long.
        """
        import filelock

        # Outside the entries, and never removed: whoever waits must wait for the same file.
        locks = self.root / "locks"
        with as_output_error(self.root):
            locks.mkdir(parents=True, exist_ok=True)
            try:
                lock = filelock.FileLock(locks / f"{entry_id}.lock", timeout=_LONGEST_WAIT_S)
                with lock.acquire(poll_interval=_POLL_S):
                    yield
            except filelock.Timeout as error:
                problem = f"another process has held {entry_id}.lock for {_LONGEST_WAIT_S:.0f} s"
                raise OutputError(path=str(self.root), problem=problem) from error


def unpublished(attached: Attached, api: TimingCacheApi, made: bytes, reason: str) -> CacheOutcome:
    """What a build did with a cache that no other build is to have; nothing is published."""
    return _outcome(attached, api.read(made), None, reason)


def _outcome(
    attached: Attached,
    values: Mapping[str, CacheValue] | None,
    asked: Collection[str] | None,
    reason: str = "",
) -> CacheOutcome:
    """What a build did, with nothing published."""
    if values is None:
        word: CacheWord = "rejected"
        reason = "TensorRT does not read the cache that the build ended with"
        accounting = account(attached.before, attached.before)
    else:
        accounting = account(attached.before, winners_of(values), asked)
        word = cache_word(
            accounting, attached=attached.blob is not None, rejected=bool(attached.rejected)
        )
        reason = attached.rejected or reason
    return CacheOutcome(
        word=word,
        reason=reason,
        quarantined=attached.quarantined,
        accounting=accounting,
        sha256=None,
    )


def combined(
    api: TimingCacheApi, base: bytes, other: bytes, keys: Collection[str]
) -> Combined | None:
    """Both caches in one, by TensorRT's own combine; None where it refuses, or a key is lost.

    Args:
        api: the builder's own operations.
        base: its values win.
        other: the second cache.
        keys: of both together.
    """
    blob = api.combine(base, other)
    values = api.read(blob) if blob is not None else None
    if blob is None or values is None or not set(keys) <= values.keys():
        return None
    return Combined(blob=blob, values=values)


def _with_new(
    api: TimingCacheApi, found: CacheEntry, made: bytes, values: Mapping[str, CacheValue]
) -> Combined | None:
    """The store's cache and what a build added to it."""
    held = found.sidecar.winners.keys()
    if values.keys() <= held:
        # The store's winners stay, so that there is nothing to combine.
        whole = api.read(found.blob)
        return Combined(blob=found.blob, values=whole) if whole is not None else None
    return combined(api, found.blob, made, held | values.keys())


def _build(outcome: CacheOutcome, model_sha256: str) -> CacheBuild:
    accounting = outcome.accounting
    now = datetime.datetime.now(datetime.timezone.utc)
    return CacheBuild(
        when=now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),  # microseconds: builds differ in it
        tool_version=trtplug.__version__,
        model_sha256=model_sha256,
        word=outcome.word,
        keys_before=accounting.before,
        keys_after=accounting.after,
        hits=accounting.hits,
        misses=len(accounting.new),
        changed=len(accounting.changed),
    )
