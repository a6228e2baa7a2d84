"""Child processes that build: started, watched, and never left behind.

One thread, one loop: it reads the children's events, holds them to time and memory limits, and
turns every end, a crash too, into an Outcome.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from trtplug.backends import launch
from trtplug.backends.backend import Outcome, OutcomeStatus
from trtplug.backends.request import ENDS, BuildRequest, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_log = logging.getLogger(__name__)


_TICK_S = 0.05
"""How often limits are checked."""

_LINGER_S = 5.0
"""What a process may take to end after it has closed its channel."""

LONGEST_BUILD_S = 86_400.0
"""Of a build with no limit of its own: one that hangs would hold the GPU for ever."""

_LOAD_S = 300.0
"""What a builder's library may take to load."""

_LAST_LINES = 12
_TAIL_BYTES = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on one build."""

    timeout_s: float = LONGEST_BUILD_S
    memory_bytes: int | None = None


@dataclass(slots=True, eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    """What it says before its log is open."""
    request: BuildRequest | None = None
    started: float = 0.0
    loaded: bool = False
    """Whether it has said anything: it is `ready` once the builder's library is there."""
    buffer: bytearray = field(default_factory=bytearray)
    end: dict[str, Any] | None = None
    stopped_for: OutcomeStatus | None = None
    peak_bytes: int = 0


class Children:
    """Runs builds in child processes, at most `jobs` at once; on exit none is left.

    Not thread-safe: the kernel ties the children's lives to the thread that starts them.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        jobs: int,
        limits: Limits,
        passed_on: tuple[str, ...] = (),
    ) -> None:
        self._command = command
        self._passed_on = passed_on
        self._jobs = jobs
        self._limits = limits
        self._waiting: list[BuildRequest] = []
        self._idle: list[_Child] = []
        self._busy: list[_Child] = []
        self._ended: list[_Child] = []
        """Their build is over; it takes the system a while longer to free their memory."""

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        for child in (*self._idle, *self._busy, *self._ended):
            launch.kill(child.process)
            assert child.process.stdout is not None
            child.process.stdout.close()
            child.stderr.close()

    def warm(self, count: int) -> None:
        """Starts children ahead of their `count` requests, so that the library loads meanwhile."""
        for _ in range(min(count, self._jobs)):
            self._idle.append(self._start())

    def submit(self, requests: Iterable[BuildRequest]) -> None:
        """Starts as many of the builds as may run at once; the others wait."""
        self._waiting += requests
        self._fill()

    def withdraw(self) -> None:
        """Ends all builds, those that wait too; what was in their folders is taken away."""
        requests = [*map(_request, self._busy), *self._waiting]
        for child in self._busy:
            launch.kill(child.process)
        self._ended += self._busy
        self._busy, self._waiting = [], []
        for request in requests:
            for file in Path(request.folder).iterdir():
                file.unlink()

    def outcomes(self, on_event: Callable[[str, Event], None]) -> Iterator[Outcome]:
        """Outcomes in the order in which builds end; `on_event` receives progress, by target."""
        while self._waiting or self._busy:
            self._fill()
            with selectors.DefaultSelector() as selector:
                for child in self._busy:
                    selector.register(_stdout(child), selectors.EVENT_READ, child)
                ready = [cast("_Child", key.data) for key, _ in selector.select(_TICK_S)]
            for child in ready:
                if not self._read(child, on_event):
                    self._busy.remove(child)
                    self._ended.append(child)
                    # The next build starts before this outcome is looked into.
                    self._fill()
                    outcome = _outcome(child)
                    if outcome.status == "crashed" and not _request(child).verbose:
                        # Once more, for a log that says how far it came.
                        _log.info("build for %s again, with a log in full", outcome.target)
                        again = dataclasses.replace(_request(child), verbose=True)
                        self._waiting.insert(0, again)
                    else:
                        yield outcome
            self._hold_to_limits()

    def _fill(self) -> None:
        while self._waiting and len(self._busy) < self._jobs:
            self._give(self._waiting.pop(0))
        if self._waiting and not self._idle:
            self._idle.append(self._start())

    def _start(self) -> _Child:
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the child
        process = launch.start(self._command, stderr, self._passed_on)
        return _Child(process=process, stderr=stderr)

    def _give(self, request: BuildRequest) -> None:
        child = self._idle.pop(0) if self._idle else self._start()
        taken = {c.request.cpu for c in self._busy if c.request is not None}
        cpus = sorted(os.sched_getaffinity(0), reverse=True)
        cpu = next((c for c in cpus if c not in taken), cpus[0])
        child.request = dataclasses.replace(request, cpu=cpu)
        child.started = time.monotonic()
        assert child.process.stdin is not None
        # A child that is dead already shows at its stdout.
        with launch.ignoring(BrokenPipeError):
            child.process.stdin.write(child.request.to_json().encode() + b"\n")
            child.process.stdin.flush()
        self._busy.append(child)

    def _read(self, child: _Child, on_event: Callable[[str, Event], None]) -> bool:
        """Reads what there is; False once the build has ended, or the child has."""
        chunk = os.read(_stdout(child), 1 << 16)
        child.buffer += chunk
        *lines, rest = child.buffer.split(b"\n")
        child.buffer = bytearray(rest)
        for line in lines:
            event = json.loads(line)
            if event["event"] in ENDS:
                child.end = event
            elif event["event"] == "note":
                _log.info("build for %s: %s", _request(child).target, event["text"])
            else:
                child.loaded = True
                on_event(_request(child).target, event)
        return bool(chunk) and child.end is None

    def _hold_to_limits(self) -> None:
        for child in self._busy:
            resident = _resident_bytes(child.process.pid)
            child.peak_bytes = max(child.peak_bytes, resident)
            limit = self._limits.memory_bytes
            if limit is not None and resident > limit:
                child.stopped_for = child.stopped_for or "memory"
                launch.kill(child.process)
            seconds = time.monotonic() - child.started
            if seconds > self._limits.timeout_s:
                child.stopped_for = child.stopped_for or "timeout"
                launch.kill(child.process)
            elif not child.loaded and seconds > _LOAD_S:
                child.stopped_for = child.stopped_for or "failed"
                launch.kill(child.process)


def _request(child: _Child) -> BuildRequest:
    assert child.request is not None
    return child.request


def _stdout(child: _Child) -> int:
    assert child.process.stdout is not None
    return child.process.stdout.fileno()


def _resident_bytes(pid: int) -> int:
    """Resident size of a process; 0 where it has ended. Source: proc_pid_statm(5), field 2."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError as error:
        _log.debug("process %d has ended: %s", pid, error)
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else 0


def _outcome(child: _Child) -> Outcome:
    request = _request(child)
    end = child.end if child.stopped_for is None else None
    status, how, reasons = _ending(child, end)
    _log.info("build for %s: %s %s", request.target, status, how)
    facts = end or {}
    names = ("builder_version", "library", "engine_sha256", "aslr_off", "error", "trial")
    return Outcome(
        target=request.target,
        folder=request.folder,
        status=status,
        reasons=reasons,
        how=how,
        warnings=tuple(facts.get("warnings", ())),
        seconds=time.monotonic() - child.started,
        peak_bytes=max(child.peak_bytes, int(facts.get("peak_bytes", 0))),
        **{name: facts[name] for name in names if name in facts},
    )


def _reap(child: _Child) -> int:
    """Exit status of a child whose channel is closed; one that then does not end is ended."""
    try:
        return child.process.wait(_LINGER_S)
    except subprocess.TimeoutExpired:
        _log.info("process %d has not ended in %g s: killed", child.process.pid, _LINGER_S)
        launch.kill(child.process)
        return 0


def _ending(
    child: _Child, end: dict[str, Any] | None
) -> tuple[OutcomeStatus, str, tuple[str, ...]]:
    """Status, how it died in words, and reasons."""
    if end is not None:
        return end["event"], "", tuple(end.get("reasons", ()))
    if child.stopped_for == "failed":
        return "failed", "", (f"the builder's library did not load within {_LOAD_S:g} s",)
    if child.stopped_for is not None:
        return child.stopped_for, "", ()
    returncode = _reap(child)
    lines = _last_lines_of(child)
    if returncode == -signal.SIGKILL:
        # Nobody here killed it: on Linux that is most often the out-of-memory killer.
        return "memory", "killed", lines
    return "crashed", launch.ending(returncode), lines


def _last_lines_of(child: _Child) -> tuple[str, ...]:
    """The last lines of its log, or of its stderr where it never opened one."""
    try:
        with (Path(_request(child).folder) / "build.log").open("rb") as log:
            return _tail(log)
    except OSError as error:
        _log.debug("no log of the build: %s", error)
        return _tail(child.stderr)


def _tail(file: IO[bytes]) -> tuple[str, ...]:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return tuple(file.read().decode("utf-8", "replace").splitlines()[-_LAST_LINES:])
