"""The sidecar of a timing cache: what it is valid for, what is in it, what builds did with it."""

from __future__ import annotations

import hashlib
import logging
import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import trtplug
from trtplug.document import read_document, schema_name, to_json
from trtplug.errors import DocumentError, FileUnreadableError
from trtplug.files import read_text, write_whole
from trtplug.timing.accounting import CacheWord
from trtplug.timing.identity import CacheIdentity, identity_differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from trtplug.backends.cache_api import CacheValue, TimingCacheApi

_log = logging.getLogger(__name__)


CACHE = "timing.cache"
"""Name of a timing cache in a bundle."""


SCHEMA = "trtplug.timing-cache/1"

_BUILDS_KEPT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedTactic:
    """One key of the cache and its winner."""

    key: str
    tactic_hash: str
    time_ms: float | None
    """As the builder timed it; None where it gave no finite number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheBuild:
    """What one build did with the cache."""

    when: str
    """UTC, such as `2026-11-30T11:03:15.123456Z`."""
    tool_version: str
    model_sha256: str
    word: CacheWord
    keys_before: int
    keys_after: int
    hits: int | None
    """None where it is not known what the build asked for."""
    misses: int
    """Keys that the build timed anew."""
    changed: int
    """Keys whose winner it changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """All that is known of one cache."""

    schema: str
    tool_version: str
    identity: CacheIdentity
    sha256: str
    bytes: int
    tactics: tuple[CachedTactic, ...]
    """In order of their keys."""
    builds: tuple[CacheBuild, ...]
    """The last 100, the newest last."""

    @property
    def last_used(self) -> str:
        """When a build used it last; empty where none did."""
        return self.builds[-1].when if self.builds else ""

    @property
    def winners(self) -> dict[str, str]:
        """Key -> tactic hash."""
        return {t.key: t.tactic_hash for t in self.tactics}


def make_sidecar(
    identity: CacheIdentity,
    blob: bytes,
    values: Mapping[str, CacheValue],
    builds: tuple[CacheBuild, ...],
) -> Sidecar:
    """The sidecar of a blob whose keys the builder read."""
    return Sidecar(
        schema=SCHEMA,
        tool_version=trtplug.__version__,
        identity=identity,
        sha256=hashlib.sha256(blob).hexdigest(),
        bytes=len(blob),
        tactics=tuple(
            CachedTactic(
                key=key,
                tactic_hash=values[key].tactic_hash,
                time_ms=values[key].time_ms if math.isfinite(values[key].time_ms) else None,
            )
            for key in sorted(values)
        ),
        builds=builds[-_BUILDS_KEPT:],
    )


def winners_of(values: Mapping[str, CacheValue]) -> dict[str, str]:
    """Key -> tactic hash."""
    return {key: value.tactic_hash for key, value in values.items()}


CURRENT = "current.json"
BLOB_SUFFIX = ".cache"

_TRIES = 20
"""A reader meets a pair that is just replaced at most once or twice."""
_LARGEST_BYTES = 1 << 30

Flaw = Literal["foreign", "corrupt", "truncated", "older", "refused"]
"""`foreign`: of another machine or other flags. `older`: of another build of TensorRT, or layout of
ours. `refused`: TensorRT itself does not take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """A whole pair, its digest checked."""

    sidecar: Sidecar
    blob: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Flawed:
    """A pair that is never to be attached, and why."""

    flaw: Flaw
    detail: str

    def __str__(self) -> str:
        return f"{self.flaw}: {self.detail}"


def read_values(entry: CacheEntry, api: TimingCacheApi) -> Mapping[str, CacheValue] | Flawed:
    """All keys of a pair with their values, as the builder reads them."""
    values = api.read(entry.blob)
    if values is None:
        return Flawed(flaw="refused", detail="TensorRT does not take it")
    if winners_of(values) != entry.sidecar.winners:
        return Flawed(flaw="corrupt", detail="it holds other keys than its sidecar lists")
    return values


def read_entry(folder: Path, wanted: CacheIdentity | None) -> CacheEntry | Flawed | None:
    """The pair in a folder; None where there is none.

    Args:
        folder: of one entry.
        wanted: what it must be valid for; None where that is not asked.
    """
    found: CacheEntry | Flawed | None = None
    for _ in range(_TRIES):
        before = _stamp(folder / CURRENT)
        if before is None:
            return None
        found = read_pair(folder / CURRENT, folder, wanted)
        # A writer may have replaced sidecar and blob between the two reads.
        if isinstance(found, CacheEntry) or before == _stamp(folder / CURRENT):
            return found
    return found


def read_pair(sidecar_file: Path, blob: Path, wanted: CacheIdentity | None) -> CacheEntry | Flawed:
    """A sidecar and its blob; `blob` is a file, or the folder of files under their digests."""
    # Asked first: a pipe would block, and a device has no end.
    if not sidecar_file.is_file():
        return Flawed(flaw="corrupt", detail=f"no sidecar: {sidecar_file.name} is no regular file")
    try:
        sidecar = read_document(Sidecar, SCHEMA, sidecar_file)
    except DocumentError as error:
        return Flawed(flaw=_flaw_of(sidecar_file), detail=error.problem)
    if wanted is not None and (differ := identity_differences(wanted, sidecar.identity)):
        only_builder = [d.field for d in differ] == ["builder"]
        detail = "; ".join(map(str, differ))
        return Flawed(flaw="older" if only_builder else "foreign", detail=detail)
    file = blob / f"{sidecar.sha256}{BLOB_SUFFIX}" if blob.is_dir() else blob
    return _checked(sidecar, file)


def _checked(sidecar: Sidecar, file: Path) -> CacheEntry | Flawed:
    try:
        if not file.is_file():
            return Flawed(flaw="corrupt", detail=f"{file.name} is missing, or no regular file")
        size = file.stat().st_size
        if size != sidecar.bytes or size > _LARGEST_BYTES:
            flaw: Flaw = "truncated" if size < sidecar.bytes else "corrupt"
            return Flawed(flaw=flaw, detail=f"{size} bytes, the sidecar says {sidecar.bytes}")
        data = file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        problem = getattr(error, "strerror", None) or error
        return Flawed(flaw="corrupt", detail=f"{file.name}: {problem}")
    if hashlib.sha256(data).hexdigest() != sidecar.sha256:
        return Flawed(flaw="corrupt", detail="its SHA-256 does not match the sidecar")
    return CacheEntry(sidecar=sidecar, blob=data)


def _flaw_of(file: Path) -> Flaw:
    """`older` for a document of ours of another version, `corrupt` for anything else."""
    try:
        name = schema_name(read_text(file)) or ""
    except FileUnreadableError as error:
        _log.debug("the sidecar cannot be read: %s", error)
        return "corrupt"
    ours, _, major = SCHEMA.partition("/")
    kind, _, version = name.partition("/")
    return "older" if kind == ours and version.partition(".")[0] != major else "corrupt"


def write_entry(folder: Path, entry: CacheEntry) -> None:
    """Replaces the pair in a folder; to be called under the entry's lock.

    Raises:
        OSError: it cannot be written; the pair that was there still is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    blob = folder / f"{entry.sidecar.sha256}{BLOB_SUFFIX}"
    write_whole(blob, entry.blob)
    write_whole(folder / CURRENT, to_json(entry.sidecar).encode())
    _sync(folder)
    for file in unexpected_files(folder, blob.name):
        _remove(file)


def _remove(file: Path) -> None:
    try:
        file.unlink()
    except OSError as error:
        _log.info("%s stays: %s", file, error)


def unexpected_files(folder: Path, blob_name: str) -> Iterator[Path]:
    """Blobs and parts in an entry's folder that no sidecar names: left by killed processes."""
    for file in sorted(folder.iterdir()):
        if file.name not in (CURRENT, blob_name):
            yield file


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _stamp(file: Path) -> tuple[int, int] | None:
    """Differs for the next file of that name; None where there is none."""
    try:
        status = file.stat()
    except OSError as error:
        _log.debug("no timing cache: %s", error)
        return None
    return status.st_ino, status.st_mtime_ns
