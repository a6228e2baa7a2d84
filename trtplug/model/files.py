"""Reading a file that a user named: every refusal says which file, and why."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from trtplug.errors import FileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """All bytes of a file.

    Raises:
        FileUnreadableError: it cannot be read; the system's reason is kept.
    """
    with _as_unreadable(path):
        _refuse_odd_files(path)
        return path.read_bytes()


def readable_size(path: Path) -> int:
    """Size of a file that can be opened, in bytes.

    Raises:
        FileUnreadableError: it cannot; the system's reason is kept.
    """
    with _as_unreadable(path):
        _refuse_odd_files(path)
        with path.open("rb") as file:
            return file.seek(0, 2)


@contextlib.contextmanager
def _as_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise FileUnreadableError(path=str(path), problem=problem.lower()) from error


def _refuse_odd_files(path: Path) -> None:
    _refuse_odd_bytes(path)
    if path.is_dir():
        raise FileUnreadableError(path=str(path), problem="it is a folder")
    if path.exists() and not path.is_file():
        raise FileUnreadableError(path=str(path), problem="it is no regular file")


def _refuse_odd_bytes(path: Path) -> None:
    """A path must be text: it goes into documents, and to builders that take UTF-8 alone."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        problem = "its path is not UTF-8; rename it, or the folder it lies in"
        raise FileUnreadableError(path=ascii(str(path)), problem=problem) from error
