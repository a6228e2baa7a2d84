"""Which backends there are, and which one to take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trtplug
from trtplug.backends.backend import Capabilities
from trtplug.backends.rtx.backend import RtxBackend
from trtplug.backends.trt.backend import TrtBackend
from trtplug.errors import BackendMissingError, GpuMissingError, UsageError
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.backends.backend import Backend
    from trtplug.backends.options import BuildOptions


_SMS = (75, 80, 86, 87, 89, 90, 100, 103, 120, 121)


class NullBackend:
    """Plans for any SM; says what would be done."""

    name = "null"

    def version(self) -> str | None:
        """That of trtplug."""
        return trtplug.__version__

    def capabilities(self) -> Capabilities:
        """Every SM that TensorRT knows, and nothing else."""
        sms = tuple(Sm(n) for n in _SMS)
        return Capabilities(
            sms=sms, needs_gpu=False, plugins=False, timing_cache=False, reproducible=True
        )

    def child_command(self) -> tuple[str, ...]:
        """There is no child.

        Raises:
            UsageError: always.
        """
        raise UsageError("backend null builds nothing", "it is there for --dry-run")

    def how_to_get(self) -> str:
        """Nothing is needed."""
        return "it is always there"

    def problem(self) -> str:
        """None."""
        return ""

    def check_options(self, options: BuildOptions) -> None:
        """Takes all of them."""

    def place(self) -> str:
        """Nothing."""
        return ""

    def passed_on(self) -> tuple[str, ...]:
        """Nothing."""
        return ()


BACKENDS: tuple[Backend, ...] = (TrtBackend(), RtxBackend(), NullBackend())
"""In the order in which `auto` tries them; it never takes `null`."""


def choose_backend(name: str, serves: Callable[[Backend], bool] = lambda _: True) -> Backend:
    """The backend of a name, or for `auto` the first usable one.

    Args:
        name: `auto`, or that of a backend.
        serves: whether a backend can do all that is asked for; `auto` prefers one that can.

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
        # RTX is what most machines lack least; by name, it is the one asked for.
        missing = wanted[-1]
        raise BackendMissingError(
            backend=missing.name, problem=missing.problem(), advice=missing.how_to_get()
        )
    if len(usable) == 1:
        return usable[0]
    return next((b for b in usable if serves(b)), usable[0])


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
