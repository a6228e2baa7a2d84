"""The digest of a model file, without loading onnx where the file is all there is to it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtplug.files import open_regular

if TYPE_CHECKING:
    from pathlib import Path


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
    with open_regular(path) as stream:
        data = stream.read()
    if b"location" not in data:
        return FileDigest(sha256=hashlib.sha256(data).hexdigest(), self_contained=True)
    from trtplug.model.load import load_model

    return FileDigest(sha256=load_model(path).sha256, self_contained=False)
