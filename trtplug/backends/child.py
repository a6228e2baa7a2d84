"""What a build's child process does for itself, and what its parent does before starting it.

Linux only; each call says in its result whether it worked, since a sandbox may forbid it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trtplug.backends.backend import BuildRequest

_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
_QUERY = 0xFFFFFFFF

PARENT_VARIABLE = "TRTPLUG_PARENT"
"""Set by the parent to its process number."""


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the call above: nobody would tell us any more.
    if str(os.getppid()) != os.environ.get(PARENT_VARIABLE, str(os.getppid())):
        os._exit(1)


LINE_BLOCK = 4096
"""Bytes of a request's line come in blocks of so many; a pipe takes a block whole (PIPE_BUF)."""


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


def run_alone(cpu: int | None) -> None:
    """Keeps all threads of this process on one processor, where none preempts another.

    The builder starts short-lived threads, and the order in which they allocate shows in the
    engine's bytes. On one processor under SCHED_BATCH a thread runs until it blocks (sched(7)), so
    the order is always the same. A sandbox may forbid either; the build goes on.
    """
    if cpu is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def take_stdout() -> int:
    """Moves stdout to a descriptor that native code does not know: nothing else writes there."""
    channel = os.dup(1)
    os.set_inheritable(channel, False)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return channel


@contextlib.contextmanager
def without_aslr() -> Iterator[None]:
    """Children started inside have address-space randomisation off, where that is allowed.

    The setting belongs to the calling thread and passes to what it starts (personality(2)).
    """
    libc = ctypes.CDLL(None)
    before = libc.personality(ctypes.c_ulong(_QUERY))
    if before == -1:
        yield
        return
    libc.personality(ctypes.c_ulong(before | _ADDR_NO_RANDOMIZE))
    try:
        yield
    finally:
        libc.personality(ctypes.c_ulong(before))


def aslr_is_off() -> bool:
    """Whether this process runs without address-space randomisation."""
    now: int = ctypes.CDLL(None).personality(ctypes.c_ulong(_QUERY))
    return now != -1 and bool(now & _ADDR_NO_RANDOMIZE)


def aslr_can_be_turned_off() -> bool:
    """Whether this system lets a process turn address-space randomisation off for its children."""
    with without_aslr():
        return aslr_is_off()
