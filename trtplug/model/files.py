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
    if path.is_dir():
        raise FileUnreadableError(path=str(path), problem="it is a folder")
    try:
        if path.exists() and not path.is_file():
            raise FileUnreadableError(path=str(path), problem="it is no regular file")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise FileUnreadableError(path=str(path), problem=problem.lower()) from error
