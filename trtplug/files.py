"""Files that others wrote or will read: read whole, kept inside a folder, published by renaming."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, BinaryIO

from trtplug.errors import FileUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_DOCUMENT = 256 << 20
"""Bytes of a report, manifest, lock, configuration or the like; real ones are far smaller."""

_PART = ".part-"


@contextlib.contextmanager
def open_regular(file: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading; the system's errors while it is open are reported too.

    Raises:
        FileUnreadableError: it cannot be read, is a folder, a FIFO, a device or a socket, or its
            path is not UTF-8: paths go into documents, and to builders that take UTF-8 alone.
    """
    try:
        str(file.absolute()).encode()
        with open(file, "rb", opener=_open_without_waiting) as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise FileUnreadableError(path=str(file), problem="it is not a regular file")
            yield stream
    except UnicodeEncodeError as error:
        problem = "its path is not UTF-8; rename it, or the folder it is in"
        raise FileUnreadableError(path=ascii(str(file)), problem=problem) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileUnreadableError(path=str(file), problem=_problem(error)) from error


def _open_without_waiting(path: str, flags: int) -> int:
    """Opening a FIFO waits for a writer otherwise."""
    return os.open(path, flags | os.O_NONBLOCK)


def _problem(error: OSError | ValueError) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EISDIR:
        return "it is a folder"
    if number == errno.ENXIO:  # a socket
        return "it is not a regular file"
    return str(getattr(error, "strerror", None) or error).lower()


def read_bytes(file: Path, largest: int = LARGEST_DOCUMENT) -> bytes:
    """All bytes of a regular file.

    Raises:
        FileUnreadableError: as `open_regular`, or it has more than `largest` bytes.
    """
    with open_regular(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > largest:
            problem = f"it has {size} bytes; at most {largest} are read"
            raise FileUnreadableError(path=str(file), problem=problem)
        return stream.read()


def read_text(file: Path) -> str:
    """The text of a small document.

    Raises:
        FileUnreadableError: as `read_bytes`, or it is not UTF-8.
    """
    try:
        return read_bytes(file).decode()
    except UnicodeDecodeError as error:
        raise FileUnreadableError(path=str(file), problem="it is not UTF-8 text") from error


def file_inside(folder: Path, path: str, *, follow_links: bool = False) -> Path | None:
    """The place in a folder that a document names; None where it is, or may be, outside.

    Absolute paths (Windows's too), `..` and NULs are refused.

    Args:
        folder: where the document is.
        path: as the document has it.
        follow_links: links may lead to other places in the folder; by default none is followed.
    """
    parts = PurePosixPath(path).parts
    absolute = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    if not path or "\0" in path or absolute or ".." in parts:
        return None
    try:
        if not follow_links:
            places = (folder.joinpath(*parts[: n + 1]) for n in range(len(parts)))
            return None if any(place.is_symlink() for place in places) else folder / path
        file = (folder / path).resolve()
        # Not exists(): since Python 3.13 it and resolve() accept a loop of links.
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            file.stat()
    except (OSError, RuntimeError):  # a loop of links, a name too long for the system
        return None
    return file if file.is_relative_to(folder.resolve()) else None


@contextlib.contextmanager
def publishing(file: Path) -> Iterator[Path]:
    """A draft to write; on a clean exit it is renamed to `file`, if it was made, else removed.

    A reader sees the old file or the new one, never half of one, after a power cut too.

    Raises:
        OSError: it cannot be written.
    """
    draft = file.with_name(f"{_PART}{secrets.token_hex(6)}")
    try:
        yield draft
        if draft.exists():
            with draft.open("rb") as stream:
                os.fsync(stream.fileno())
            draft.replace(file)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(file: Path, data: bytes) -> None:
    """Replaces a file by one with these bytes.

    Raises:
        OSError: it cannot be written; the old file is as it was.
    """
    with publishing(file) as draft:
        draft.write_bytes(data)
