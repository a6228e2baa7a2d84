"""Folders that are filled under a scratch name and then renamed into place.

A scratch folder is held by a lock on the folder itself, which the kernel drops when its process
ends, however it ends. So what a killed process left behind can be told from work under way.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import time
from typing import TYPE_CHECKING

from trtplug.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_RANDOM_BYTES = 6

_YOUNG_S = 60.0
"""A folder younger than this may be about to be locked; it is left alone."""


@contextlib.contextmanager
def scratch_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder `<prefix><random>` in `parent`; whatever is left of it goes at the end.

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
    # The whole name is matched: a user's own `.out.partial-backup` is none of ours.
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
