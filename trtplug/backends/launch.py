"""Starts child processes: isolated from the working folder, with a fixed environment, and a limit.

Every native library runs in such a child: here, a crash, a hang or a stopped process there is a
result like any other.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from trtplug.backends.child import ADDR_NO_RANDOMIZE, PARENT_VARIABLE, QUERY, aslr_is_off

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)

GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""Environment variables that choose a GPU."""

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "LANG")
"""The child's environment is fixed but for these: nothing else that is set can reach an engine."""

_FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    # glibc gives memory back to the system and fetches it again all the time, otherwise: 8 % of a
    # build of PP-OCRv4 detection.
    "GLIBC_TUNABLES": "glibc.malloc.trim_threshold=4294967296:glibc.malloc.top_pad=67108864:"
    "glibc.malloc.mmap_threshold=33554432",
}

_REAP_S = 5.0
"""What the system may take to end a killed process; one that waits for a device takes for ever."""


def python_command(module: str) -> tuple[str, ...]:
    """This interpreter, running a module of ours that is not looked for in the working folder.

    `python -m` looks there first, and would run a `json.py` that lies there. `-P` is new in Python
    3.11, and `-I` would ignore PYTHONPATH and PYTHONHASHSEED too.
    """
    drop = "sys.path[:1] == [''] and sys.path.pop(0)"
    run = f"runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
    return (sys.executable, "-c", f"import sys; {drop}; import runpy; {run}")


def start(
    command: tuple[str, ...], stderr: IO[bytes] | int, passed_on: tuple[str, ...] = ()
) -> subprocess.Popen[bytes]:
    """Starts a child with pipes for stdin and stdout; the caller holds it to a time limit.

    Its working folder is `/`, and it has a session of its own: Ctrl-C reaches the parent alone.

    Args:
        command: such as `python_command` gives.
        stderr: as of `subprocess.Popen`.
        passed_on: environment variables that it gets beside the usual ones.

    Raises:
        OSError: it cannot be started.
    """
    environ = {k: os.environ[k] for k in (*_PASSED_ON, *passed_on) if k in os.environ}
    if python_path := _python_path(os.environ.get("PYTHONPATH", "")):
        environ["PYTHONPATH"] = python_path
    with _without_aslr():
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**environ, **_FIXED, PARENT_VARIABLE: str(os.getpid())},
            cwd="/",
            start_new_session=True,
        )
    _log.debug("process %d started: %s", process.pid, command[-1])
    return process


def _python_path(text: str) -> str:
    """PYTHONPATH for another working folder; an empty entry is this one, and never meant."""
    places = (place for place in text.split(os.pathsep) if place)
    return os.pathsep.join(os.path.abspath(place) for place in places)  # noqa: PTH100 - keeps links


def kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a child, a stopped one too, and closes its stdin."""
    with ignoring(ProcessLookupError):
        process.kill()
    try:
        process.wait(_REAP_S)
    except subprocess.TimeoutExpired:
        _log.info("process %d was killed, and has not ended in %g s", process.pid, _REAP_S)
    # Bytes that it never read are still in the buffer.
    with ignoring(OSError):
        if process.stdin is not None:
            process.stdin.close()


@contextlib.contextmanager
def ignoring(*kinds: type[OSError]) -> Iterator[None]:
    """Goes on after such an error; a line of the log has it."""
    try:
        yield
    except kinds as error:
        _log.debug("ignored: %s", error)


def ending(returncode: int) -> str:
    """How a process ended, such as `signal SIGSEGV` or `exit status 1`."""
    if returncode >= 0:
        return f"exit status {returncode}"
    try:
        return f"signal {signal.Signals(-returncode).name}"
    except ValueError:
        return f"signal {-returncode}"  # a real-time signal has no name


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a child did with one line of input."""

    lines: tuple[str, ...]
    """Of its stdout."""
    how: str
    """How it ended, in words."""
    timed_out: bool


def ask(
    module: str, line: str, *, limit_s: float, passed_on: tuple[str, ...] = GPU_VARIABLES
) -> Answer:
    """Runs a module of ours on one line of input, to its end or to a time limit.

    Args:
        module: its full name.
        line: of JSON.
        limit_s: seconds until it is killed.
        passed_on: as for `start`.

    Raises:
        OSError: it cannot be started.
    """
    process = start(python_command(module), subprocess.DEVNULL, passed_on)
    try:
        out, _ = process.communicate(line.encode() + b"\n", timeout=limit_s)
    except subprocess.TimeoutExpired:
        how = f"no end within {limit_s:g} s"
        _log.info("%s was killed: %s", module, how)
        return Answer(lines=(), how=how, timed_out=True)
    finally:
        kill(process)
        assert process.stdout is not None
        process.stdout.close()
    how = ending(process.returncode)
    _log.debug("%s ended with %s", module, how)
    return Answer(
        lines=tuple(out.decode("utf-8", "replace").splitlines()), how=how, timed_out=False
    )


@contextlib.contextmanager
def _without_aslr() -> Iterator[None]:
    """Children started inside have address-space randomisation off, where that is allowed.

    The setting belongs to the calling thread and passes to what it starts (personality(2)).
    """
    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(QUERY))
    if before == -1:
        yield
        return
    libc.personality(ctypes.c_ulong(before | ADDR_NO_RANDOMIZE))
    try:
        yield
    finally:
        libc.personality(ctypes.c_ulong(before))


def aslr_can_be_turned_off() -> bool:
    """Whether this system lets a process turn address-space randomisation off for its children."""
    with _without_aslr():
        return aslr_is_off()
