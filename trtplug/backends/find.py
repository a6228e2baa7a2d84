"""Which backends there are, and which one to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtplug.backends.null import NullBackend
from trtplug.backends.rtx import RtxBackend
from trtplug.errors import BackendMissingError, GpuMissingError, UsageError

if TYPE_CHECKING:
    from trtplug.backends.backend import Backend
    from trtplug.target import Sm

BACKENDS: tuple[Backend, ...] = (RtxBackend(), NullBackend())
"""In the order in which `auto` tries them; it never takes `null`."""


def choose_backend(name: str) -> Backend:
    """The backend of a name, or the first usable one for `auto`.

    Raises:
        UsageError: there is no backend of that name.
        BackendMissingError: it cannot be used here.
    """
    wanted = [b for b in BACKENDS if name == b.name or (name == "auto" and b.name != "null")]
    if not wanted:
        names = ", ".join(("auto", *(b.name for b in BACKENDS)))
        raise UsageError(f"unknown backend {name!r}", f"the backends are {names}")
    usable = [b for b in wanted if b.capabilities().sms]
    if not usable:
        raise BackendMissingError(
            backend=wanted[0].name, problem="it is not installed", advice=wanted[0].how_to_get()
        )
    return usable[0]


def local_sm() -> Sm:
    """SM of the first GPU of this machine.

    Raises:
        GpuMissingError: there is none, or no driver.
    """
    from trtplug.backends.gpu import find_gpus

    search = find_gpus()
    if not search.gpus:
        raise GpuMissingError(problem=search.problem)
    return search.gpus[0].sm
