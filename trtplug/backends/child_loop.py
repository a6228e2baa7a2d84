"""The life of a child process that builds: what all builders have in common.

It reads a request line from stdin, writes events as JSON lines to its stdout, and leaves `engine`,
`build.log` and what its adapter adds in the request's folder. A line before it may name a model to
parse early, while the parent still checks the request. Whatever the native library does to the
process, the parent only sees a child that ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trtplug.backends.backend import LINE_BLOCK, BuildRequest, EarlyParse, parse_line
from trtplug.backends.child import aslr_is_off, die_with_parent, take_stdout

if TYPE_CHECKING:
    from trtplug.backends.build_log import BuildLog
    from trtplug.backends.network import Network

Emit = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Built:
    """What a builder gave."""

    plan: memoryview
    """The engine, in the builder's own buffer."""
    facts: dict[str, object]
    """Joined to the event that ends the build."""


class Adapter(Protocol):
    """What one builder does in its own way."""

    library: str
    """Part of the file name of its library."""

    def load(self) -> Any:
        """Imports the bindings."""

    def begin(self, request: BuildRequest) -> None:
        """Prepares the process, before anything is built."""

    def open_log(self, trt: Any, folder: Path, *, verbose: bool) -> BuildLog:
        """Starts the log."""

    def parse(self, trt: Any, log: BuildLog, request: BuildRequest | EarlyParse) -> Network:
        """Parses the model, or a mended copy of it, into a network."""

    def build(
        self, trt: Any, parsed: Network, request: BuildRequest, emit: Emit
    ) -> Built | list[str]:
        """Builds; or says why there is no engine."""

    def finish(self, request: BuildRequest, log: BuildLog, emit: Emit) -> dict[str, object]:
        """What else is to be done with the file `engine`; `reasons` where it is not usable."""


def serve(adapter: Adapter) -> None:
    """Runs until the request is answered, or stdin ends; then ends the process."""
    die_with_parent()
    channel = take_stdout()

    def emit(**event: object) -> None:
        os.write(channel, (json.dumps(event) + "\n").encode())

    trt = adapter.load()
    emit(event="ready")
    early: list[Network] = []
    while line := _read_line():
        message = parse_line(line)
        if isinstance(message, BuildRequest):
            adapter.begin(message)
            emit(**_answer(adapter, trt, message, early, emit))
            break
        early = _parse_early(adapter, trt, message)
    # The library's teardown takes time and has nothing left to save.
    os._exit(0)


def _read_line() -> str:
    """One line of stdin, block by block: a buffered read allocates by what happens to be there."""
    line = b""
    while not line.endswith(b"\n") and (block := os.read(0, LINE_BLOCK)):
        line += block
    return line.decode()


def _parse_early(adapter: Adapter, trt: Any, early: EarlyParse) -> list[Network]:
    try:
        return [adapter.parse(trt, adapter.open_log(trt, Path(early.folder), verbose=False), early)]
    except OSError:
        return []  # the request itself will meet it again, and tell


def _answer(
    adapter: Adapter,
    trt: Any,
    request: BuildRequest,
    early: list[Network],
    emit: Emit,
) -> dict[str, object]:
    """Builds, and keeps the result; a folder that cannot be written is no failure of the build."""
    try:
        parsed = early.pop() if early else None
        if parsed is None or request.data is not None or parsed.model != request.model:
            folder = Path(request.folder)
            log = parsed.log if parsed else None
            log = log or adapter.open_log(trt, folder, verbose=request.verbose)
            parsed = adapter.parse(trt, log, request)
        log = parsed.log
        if parsed.refusals:
            return {"event": "refused", "reasons": parsed.refusals, "warnings": log.messages("W")}
        end = adapter.build(trt, parsed, request, emit)
        del parsed  # what the builder holds on the GPU is free for what follows
        if isinstance(end, Built):
            return _keep(adapter, request, end, log, emit) | {"builder_version": trt.__version__}
        return {"event": "failed", "reasons": end, "warnings": log.messages("W")}
    except OSError as error:
        return {"event": "unwritable", "reasons": [error.strerror or str(error)]}


def _keep(
    adapter: Adapter, request: BuildRequest, built: Built, log: BuildLog, emit: Emit
) -> dict[str, object]:
    """Writes the builder's buffer as it is, and says what it was."""
    folder = Path(request.folder)
    with (folder / "engine").open("xb") as file:
        file.write(built.plan)
    facts = adapter.finish(request, log, emit)
    return {
        "event": "failed" if "reasons" in facts else "built",
        "warnings": log.messages("W"),
        "library": loaded_library(adapter.library),
        "engine_sha256": hashlib.sha256(built.plan).hexdigest(),
        "aslr_off": aslr_is_off(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **built.facts,
        **facts,
    }


def loaded_library(part: str) -> str:
    """File name of a library in this process; empty where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    found = (line.rpartition("/")[2] for line in lines if part in line.rpartition("/")[2])
    return next(found, "")
