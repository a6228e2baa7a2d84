"""Reading a file that a user named: every refusal says which file, and why."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDigest:
    """A model's digest, and whether the file is all there is to it."""

    sha256: str
    """`Model.sha256`."""
    self_contained: bool
    """False where it may have external data."""


def digest_model(path: Path) -> FileDigest:
    """The digest of a model file.

    A model with external data has the word `location` in it, as the key of each data file
    (onnx.proto, TensorProto.external_data). Without that word the digest is that of the bytes, and
    onnx need not be loaded.

    Raises:
        FileUnreadableError: it cannot be read.
        ModelInvalidError: it may have external data, and is no ONNX model.
        ExternalDataError: its external data is missing, too short, or outside its folder.
    """
    data = read_bytes(path)
    if b"location" not in data:
        return FileDigest(sha256=hashlib.sha256(data).hexdigest(), self_contained=True)
    from trtplug.model.load import load_model

    return FileDigest(sha256=load_model(path).sha256, self_contained=False)
