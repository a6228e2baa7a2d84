"""The log of one build: written by the native library itself, and read back.

The library's own logger writes to stdout and stderr, which are the log file here: a crash loses no
line, and a full disk raises nothing in a native callback.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_MESSAGE = re.compile(rb"^\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT\] \[([A-Z])\] ", re.MULTILINE)

_KEPT = 50
"""Errors and warnings that are reported; the log has all."""


class BuildLog:
    """`build.log` in a folder. From here on stdout and stderr of the process go there."""

    def __init__(self, trt: Any, folder: Path, *, verbose: bool) -> None:
        self.path = folder / "build.log"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(self._file, 1)
        os.dup2(self._file, 2)
        self.logger = trt.Logger(trt.Logger.VERBOSE if verbose else trt.Logger.INFO)

    def phase_finished(self, phase: str) -> None:
        """To be called by the progress monitor."""

    def messages(self, severity: str) -> list[str]:
        """The first messages of a severity: `E` (and `F`) or `W`."""
        data = self.path.read_bytes()
        starts = list(_MESSAGE.finditer(data))
        ends = [m.start() for m in starts[1:]] + [len(data)] * bool(starts)
        wanted = (b"E", b"F") if severity == "E" else (severity.encode(),)
        found = [
            data[m.end() : end].decode("utf-8", "replace").strip()
            for m, end in zip(starts, ends, strict=True)
            if m[1] in wanted
        ]
        return list(dict.fromkeys(found))[:_KEPT]

    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self._file).st_size

    def first_message(self, begin: int, end: int) -> bytes:
        """Text between two places, without the prefix of its first message; empty without one."""
        with self.path.open("rb") as file:
            file.seek(begin)
            text = file.read(end - begin)
        message = _MESSAGE.match(text)
        return text[message.end() :].rstrip(b"\n") if message else b""

    def probe_disk(self) -> None:
        """Writes a line.

        Raises:
            OSError: the log cannot be written, as on a full disk.
        """
        os.write(self._file, b"\n")
