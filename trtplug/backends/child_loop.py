"""The life of a child process that builds: what all builders have in common.

It reads a request line from stdin, writes events as JSON lines to its stdout, and leaves `engine`,
`build.log` and what its adapter adds in the request's folder. A crash of the native library is a
child that ended, for the parent.

Nothing is loaded here that a builder does not need: children start with every command.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from trtplug.backends.child import LINE_BLOCK, aslr_is_off, die_with_parent, take_stdout

if TYPE_CHECKING:
    from trtplug.backends.build_log import BuildLog
    from trtplug.backends.network import Network
    from trtplug.backends.request import BuildRequest

Emit = Callable[..., None]


class Built:
    """What a builder gave."""

    def __init__(self, plan: memoryview) -> None:
        self.plan = plan
        """The engine, in the builder's own buffer."""


class Adapter(Protocol):
    """What one builder does in its own way."""

    library: str
    """Part of the file name of its library."""

    def load(self) -> Any:
        """Imports the bindings."""

    def begin(self, request: BuildRequest) -> list[str]:
        """Prepares the process, before anything is built; what the system refused, in words."""

    def open_log(self, trt: Any, folder: Path, *, verbose: bool) -> BuildLog:
        """Starts the log."""

    def parse(self, trt: Any, log: BuildLog, request: BuildRequest) -> Network:
        """Parses the model, or a repaired copy of it, into a network."""

    def build(
        self, trt: Any, parsed: Network, request: BuildRequest, emit: Emit
    ) -> Built | list[str]:
        """Builds; or says why there is no engine."""

    def finish(self, request: BuildRequest, log: BuildLog, emit: Emit) -> dict[str, object]:
        """What else is to be done with the file `engine`; `reasons` where it is not usable."""


def serve(adapter: Adapter) -> None:
    """Answers one request, or none where the parent wanted nothing in the end; ends the process."""
    gc.disable()
    die_with_parent()
    channel = take_stdout()

    def emit(**event: object) -> None:
        os.write(channel, (json.dumps(event) + "\n").encode())

    trt = adapter.load()
    emit(event="ready")
    if request := read_request():
        for text in adapter.begin(request):
            emit(event="note", text=text)
        emit(**_answer(adapter, trt, request, emit))
    # The library's teardown takes time and has nothing left to save.
    os._exit(0)


def read_request() -> BuildRequest | None:
    """What the parent wrote to stdin; None where it wanted nothing in the end.

    Block by block: a buffered read allocates by what happens to be there.
    """
    line = b""
    while not line.endswith(b"\n") and (block := os.read(0, LINE_BLOCK)):
        line += block
    return parse_request(line) if line else None


def parse_request(line: bytes) -> BuildRequest:
    """The fields of a request, by name, lists where it has tuples.

    They will do: to make the dataclasses would take the child a fifth of its start.
    """
    request: Any = json.loads(line, object_hook=lambda fields: SimpleNamespace(**fields))
    return request  # type: ignore[no-any-return]


def _answer(adapter: Adapter, trt: Any, request: BuildRequest, emit: Emit) -> dict[str, object]:
    """Builds, and keeps the result; a folder that cannot be written is no failure of the build."""
    try:
        log = adapter.open_log(trt, Path(request.folder), verbose=request.verbose)
        parsed = adapter.parse(trt, log, request)
        if parsed.refusals or parsed.error:
            refusal = {"reasons": parsed.refusals, "error": parsed.error}
            return {"event": "refused", **refusal, "warnings": log.messages("W")}
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
        "library": loaded_library(adapter.library, emit),
        "engine_sha256": hashlib.sha256(built.plan).hexdigest(),
        "aslr_off": aslr_is_off(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **facts,
    }


def loaded_library(part: str, emit: Emit) -> str:
    """File name of a library in this process; empty where the system does not report it."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        emit(event="note", text=f"the library's file is not known: {error}")
        return ""
    found = (line.rpartition("/")[2] for line in lines if part in line.rpartition("/")[2])
    return next(found, "")
