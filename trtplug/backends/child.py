"""What a child process does for itself.

Linux only; each call says in its result whether it worked, since a sandbox may forbid it.
"""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
ADDR_NO_RANDOMIZE = 0x0040000
QUERY = 0xFFFFFFFF
"""Of personality(2): asks, and changes nothing."""

PARENT_VARIABLE = "TRTPLUG_PARENT"
"""Set by the parent to its process number."""


def die_with_parent() -> None:
    """Has the kernel kill this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The parent may have died before the call above: then no signal comes any more.
    if str(os.getppid()) != os.environ.get(PARENT_VARIABLE, str(os.getppid())):
        os._exit(1)


LINE_BLOCK = 4096
"""Bytes of a request's line come in blocks of so many; a pipe takes a block whole (PIPE_BUF)."""


def run_alone(cpu: int | None) -> list[str]:
    """Keeps all threads of this process on one processor, where none preempts another.

    The builder starts short-lived threads, and the order in which they allocate shows in the
    engine's bytes. On one processor under SCHED_BATCH a thread runs until it blocks (sched(7)), so
    the order is always the same. A sandbox may forbid either; the build goes on.

    Returns:
        What the system refused.
    """
    refused = []
    try:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})
    except OSError as error:
        refused.append(f"not kept on one processor: {error}")
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError as error:
        refused.append(f"not under SCHED_BATCH: {error}")
    return refused


def take_stdout() -> int:
    """Moves stdout to a descriptor that native code does not know: nothing else writes there."""
    channel = os.dup(1)
    os.set_inheritable(channel, False)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return channel


def aslr_is_off() -> bool:
    """Whether this process runs without address-space randomisation."""
    now: int = ctypes.CDLL(None).personality(ctypes.c_ulong(QUERY))
    return now != -1 and bool(now & ADDR_NO_RANDOMIZE)
