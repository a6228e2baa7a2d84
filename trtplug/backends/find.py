"""Which backends there are, and which one to take."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trtplug
from trtplug.backends import gpu
from trtplug.backends.backend import Backend, Capabilities
from trtplug.backends.cache_api import CachingBackend
from trtplug.backends.rtx.backend import RtxBackend
from trtplug.backends.trt.backend import TrtBackend
from trtplug.errors import BackendMissingError, GpuMissingError, UsageError
from trtplug.target import Sm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from trtplug.backends.cache_api import TimingCacheApi
    from trtplug.backends.options import BuildOptions


_log = logging.getLogger(__name__)

_SMS = (75, 80, 86, 87, 89, 90, 100, 103, 120, 121)


class NullBackend(Backend):
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

    def check_options(self, options: BuildOptions) -> None:
        """Takes all of them."""


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
    usable = []
    for backend in wanted:
        if backend.capabilities().sms:
            usable.append(backend)
        else:
            _log.info("backend %s is not chosen: %s", backend.name, backend.problem())
    if not usable:
        # RTX is what most machines lack least; by name, it is the one asked for.
        missing = wanted[-1]
        raise BackendMissingError(
            backend=missing.name, problem=missing.problem(), advice=missing.how_to_get()
        )
    if len(usable) == 1:
        return usable[0]
    chosen = next((b for b in usable if serves(b)), usable[0])
    for backend in usable[: usable.index(chosen)]:
        _log.info("backend %s is not chosen: it cannot do all that is asked for", backend.name)
    return chosen


def caching_backend() -> CachingBackend | None:
    """The first backend here that has timing caches and is installed."""
    for backend in BACKENDS:
        if isinstance(backend, CachingBackend) and backend.version() is not None:
            return backend
    return None


def timing_cache_api() -> TimingCacheApi:
    """That of the first backend here that has timing caches.

    Raises:
        BackendMissingError: there is none.
    """
    backend = caching_backend()
    if backend is not None:
        return backend.timing_caches()
    raise BackendMissingError(
        backend="trt",
        problem="timing caches are read by TensorRT itself, and it is not installed",
        advice="pip install tensorrt, on a machine with an NVIDIA GPU",
    )


def local_sm() -> Sm:
    """SM of the first GPU of this machine.

    Raises:
        GpuMissingError: there is none, or no driver.
    """
    search = gpu.find_gpus()
    if not search.gpus:
        raise GpuMissingError(problem=search.problem)
    return search.gpus[0].sm


def read_machine(search: gpu.GpuSearch | None = None, version: Path | None = None) -> gpu.Machine:
    """Looks; never raises, and loads no builder."""
    found = gpu.find_gpus() if search is None else search
    backend = caching_backend()
    return gpu.Machine(
        gpus=found.gpus,
        driver=gpu.driver_version() if version is None else gpu.read_version(version),
        cuda=found.driver,
        gpu_problem=found.problem,
        tensorrt=backend.version() if backend else None,
    )
