"""The log of one build with TensorRT-RTX: written by the library itself, and read back.

The library's own logger writes to stdout and stderr, which are the log file here: a crash loses no
line, and a full disk raises nothing in a native callback. A logger of ours would cost a tenth of
the build, and so would a log in full: it is kept for the second try of a build that crashed.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_PREFIX = rb"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT\] \[([A-Z])\] "
_MESSAGE = re.compile(rb"^" + _PREFIX, re.MULTILINE)

_WHOLE, _PREPARING, _ENGINE = (
    "Building engine",
    "Preparing graph for optimization",
    "Building engine from subgraph",
)
"""Phases, in the words of the progress monitor."""

_KEPT = 50
"""Errors and warnings that are told; the log has all."""


class BuildLog:
    """`build.log` in a folder. From here on stdout and stderr of the process go there."""

    def __init__(self, trt: Any, folder: Path, *, verbose: bool) -> None:
        self._path = folder / "build.log"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(self._file, 1)
        os.dup2(self._file, 2)
        self._full = trt.Logger.VERBOSE
        self.logger = trt.Logger(trt.Logger.VERBOSE if verbose else trt.Logger.INFO)
        self._layers_begin = self._layers_end = 0

    def phase_finished(self, phase: str) -> None:
        """To be called by the progress monitor.

        The layers are the one message between the end of the last subgraph and that of the whole:
        found by its place, since names in it could hold anything.
        """
        if phase == _PREPARING:
            self.logger.min_severity = self._full  # few lines are left, and the layers are one
        elif phase == _ENGINE:
            self._layers_begin = self._size()
        elif phase == _WHOLE:
            self._layers_end = self._size()

    def layers(self) -> bytes:
        """The message that starts with `Layers:`; empty where there was none.

        Raises:
            OSError: the log could not be written.
        """
        with self._path.open("rb") as file:
            file.seek(self._layers_begin)
            text = file.read(self._layers_end - self._layers_begin)
        message = _MESSAGE.match(text)
        found = text[message.end() :].rstrip(b"\n") if message else b""
        if not found.startswith(b"Layers:\n"):
            os.write(self._file, b"\n")  # on a full disk this says why there are none
            return b""
        return found

    def messages(self, severity: str) -> list[str]:
        """The first messages of a severity: `E` (and `F`) or `W`."""
        data = self._path.read_bytes()
        starts = list(_MESSAGE.finditer(data))
        ends = [m.start() for m in starts[1:]] + [len(data)]
        wanted = (b"E", b"F") if severity == "E" else (severity.encode(),)
        found = [
            data[m.end() : end].decode("utf-8", "replace").strip()
            for m, end in zip(starts, ends, strict=True)
            if m[1] in wanted
        ]
        return list(dict.fromkeys(found))[:_KEPT]

    def _size(self) -> int:
        return os.fstat(self._file).st_size
