"""The log of one build with TensorRT-RTX, and the layer listing in it.

A logger of ours would cost a tenth of the build, and so would a log in full: it is kept for the
second try of a build that crashed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.backends.build_log import BuildLog

if TYPE_CHECKING:
    from pathlib import Path

_WHOLE, _PREPARING, _ENGINE = (
    "Building engine",
    "Preparing graph for optimization",
    "Building engine from subgraph",
)
"""Phases, in the words of the progress monitor."""


class RtxLog(BuildLog):
    """A build's log that knows where the layers stand in it."""

    def __init__(self, trt: Any, folder: Path, *, verbose: bool) -> None:
        super().__init__(trt, folder, verbose=verbose)
        self._full = trt.Logger.VERBOSE
        self._layers_begin = self._layers_end = 0

    def phase_finished(self, phase: str) -> None:
        """To be called by the progress monitor.

        The layers are the one message between the end of the last subgraph and that of the whole:
        found by its place, since names in it could hold anything.
        """
        if phase == _PREPARING:
            self.logger.min_severity = self._full  # few lines are left, and the layers are one
        elif phase == _ENGINE:
            self._layers_begin = self.size()
        elif phase == _WHOLE:
            self._layers_end = self.size()

    def layers(self) -> bytes:
        """The message that starts with `Layers:`; empty where there was none.

        Raises:
            OSError: the log could not be written.
        """
        found = self.first_message(self._layers_begin, self._layers_end)
        if not found.startswith(b"Layers:\n"):
            self.probe_disk()  # on a full disk this says why there are none
            return b""
        return found
