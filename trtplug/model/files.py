"""Reading a file that a user named: every refusal says which file, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.errors import FileUnreadableError

if TYPE_CHECKING:
    from pathlib import Path


def read_bytes(path: Path) -> bytes:
    """All bytes of a file.

    Raises:
        FileUnreadableError: it cannot be read; the system's reason is kept.
    """
    _refuse_odd_bytes(path)
    try:
        if path.is_dir():
            raise FileUnreadableError(path=str(path), problem="it is a folder")
        if path.exists() and not path.is_file():
            raise FileUnreadableError(path=str(path), problem="it is no regular file")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise FileUnreadableError(path=str(path), problem=problem.lower()) from error


def _refuse_odd_bytes(path: Path) -> None:
    """A path must be text: it goes into documents, and to builders that take UTF-8 alone."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        problem = "its path is not UTF-8; rename it, or the folder it lies in"
        raise FileUnreadableError(path=ascii(str(path)), problem=problem) from error
