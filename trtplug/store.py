"""The content-addressed store: folders of files under the digest of what made them.

An entry is published by renaming a finished folder into place, so a reader never sees half of one.
Anything odd (missing, partial, older, a changed byte) is a miss, and is cleared away.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import FileUnreadableError, OutputError
from trtplug.files import read_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_log = logging.getLogger(__name__)


SCHEMA = "trtplug.entry/1"

_ENTRY = "entry.json"
_PART = "part-"


def key_of(inputs: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of declared inputs; equal inputs give equal keys anywhere."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def sha256_of(file: Path) -> str:
    """Digest of a file, read in pieces of 1 MiB."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder of entries; safe to share between processes."""

    root: Path

    def find(self, key: str) -> Path | None:
        """Folder of a whole entry, every file checked against its digest; None on a miss."""
        folder = self._folder(key)
        try:
            # Asked first: what is there was renamed in whole, so what is missing in it is damage.
            if not folder.exists():
                _log.debug("no entry %s", key[:16])
                return None
            entry = json.loads(read_bytes(folder / _ENTRY))
            if entry["schema"] == SCHEMA and entry["key"] == key and _whole(folder, entry["files"]):
                return folder
            problem: object = "it is of another version, or a file is missing or changed"
        except (
            FileUnreadableError,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:  # unreadable, or JSON that is no entry
            problem = f"{type(error).__name__}: {error}"
        _log.info("entry %s is not used, and removed: %s", key[:16], problem)
        self._clear(folder)
        return None

    @contextlib.contextmanager
    def publishing(
        self, key: str, inputs: Mapping[str, object], digests: Mapping[str, str] | None = None
    ) -> Iterator[Path]:
        """A folder to fill; on a clean exit it becomes the entry, otherwise it is removed.

        Losing a race against another process is fine: its entry is as good, and stays.

        Args:
            key: of the entry.
            inputs: what made it, kept for people.
            digests: SHA-256 of files, by name, that the caller knows already. A wrong one makes the
                entry a miss.

        Raises:
            OutputError: the store cannot be written.
        """
        sweep(self.root, _PART)
        with scratch_folder(self.root, _PART) as part:
            yield part
            with as_output_error(self.root):
                self._publish(key, inputs, digests or {}, part)

    def keep(
        self,
        key: str,
        inputs: Mapping[str, object],
        fill: Callable[[Path], object],
        digests: Mapping[str, str] | None = None,
    ) -> bool:
        """As `publishing`; a store that cannot be written costs later runs time, and this one none.

        Args:
            key: of the entry.
            inputs: what made it.
            fill: writes the files into the folder that it is given.
            digests: as for `publishing`.

        Returns:
            Whether it was kept.
        """
        try:
            with self.publishing(key, inputs, digests) as part:
                fill(part)
        except (OutputError, OSError) as error:
            _log.info("entry %s is not kept: %s", key[:16], error)
            return False
        return True

    def _publish(
        self, key: str, inputs: Mapping[str, object], digests: Mapping[str, str], part: Path
    ) -> None:
        files = {p.name: digests.get(p.name) or sha256_of(p) for p in sorted(part.iterdir())}
        entry = {"schema": SCHEMA, "key": key, "inputs": inputs, "files": files}
        (part / _ENTRY).write_text(json.dumps(entry, indent=2, sort_keys=True), encoding="utf-8")
        folder = self._folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            _log.debug("entry %s was published by another process", key[:16])

    def _clear(self, folder: Path) -> None:
        """Takes an unusable entry away, first by name, so that no reader meets half of it."""
        with contextlib.suppress(OSError):
            away = self.root / f"{_PART}{secrets.token_hex(6)}"
            folder.rename(away)
            if away.is_dir():
                shutil.rmtree(away, ignore_errors=True)
            else:
                away.unlink()

    def _folder(self, key: str) -> Path:
        return self.root / key[:2] / key


def _whole(folder: Path, files: Mapping[str, str]) -> bool:
    return all(
        "/" not in name and (folder / name).is_file() and sha256_of(folder / name) == digest
        for name, digest in files.items()
    )


_RANDOM_BYTES = 6

_YOUNG_S = 60.0
"""A folder younger than this may be about to be locked; it is left alone."""


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder `<prefix><random>` in `parent`; what is left of it is removed at the end.

    Raises:
        OutputError: it cannot be made.
    """
    folder = parent / f"{prefix}{secrets.token_hex(_RANDOM_BYTES)}"
    with as_output_error(parent):
        if parent.exists() and not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep(parent: Path, prefix: str, young_s: float = _YOUNG_S) -> None:
    """Removes scratch folders whose process is gone; never fails."""
    # The whole name is matched: a user's own `.out.partial-backup` is not ours.
    ours = re.compile(re.escape(prefix) + f"[0-9a-f]{{{2 * _RANDOM_BYTES}}}")
    with contextlib.suppress(OSError):
        for folder in parent.iterdir():
            if ours.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                with contextlib.suppress(OSError):
                    _remove_abandoned(folder, young_s)


def _remove_abandoned(folder: Path, young_s: float) -> None:
    if time.time() - folder.stat().st_mtime < young_s:
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(held)


@contextlib.contextmanager
def as_output_error(path: Path) -> Iterator[None]:
    """Turns a refusal of the file system (full, read-only, no permission) into an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(path=str(path), problem=error.strerror or str(error)) from error
