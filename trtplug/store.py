"""The content-addressed store: folders of files under the digest of what made them.

An entry is published by renaming a finished folder into place, so a reader never sees half of one.
Anything odd (missing, partial, older, a changed byte) is a miss, and is cleared away.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import OutputError
from trtplug.scratch import as_output_error, scratch_folder, sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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
                return None
            entry = json.loads((folder / _ENTRY).read_bytes())
            if entry["schema"] == SCHEMA and entry["key"] == key and _whole(folder, entry["files"]):
                return folder
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
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
        except (OutputError, OSError):
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
