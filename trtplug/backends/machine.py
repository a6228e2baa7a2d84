"""The machine at hand, as caches and locks compare it: GPUs, driver, CUDA."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from trtplug.backends.gpu import Gpu, GpuSearch, find_gpus

_DRIVER_VERSION = Path("/sys/module/nvidia/version")
_NVML = "libnvidia-ml.so.1"
_LONGEST_VERSION = 80
"""Characters. Source: nvml.h, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a build depends on besides its inputs; None is unknown, or not there."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    """Version of the kernel driver, such as `580.95.05`."""
    cuda: str | None
    """CUDA version that the driver offers, such as `13.0`."""
    gpu_problem: str
    """Why there is no GPU; empty where there is one."""
    tensorrt: str | None = None
    """Full build of the builder here that has timing caches; None where none is installed."""


def read_machine(search: GpuSearch | None = None, version: Path | None = None) -> Machine:
    """Looks; never raises, and loads no builder."""
    from trtplug.backends.cache_api import caching_backend

    found = find_gpus() if search is None else search
    backend = caching_backend()
    return Machine(
        gpus=found.gpus,
        driver=driver_version() if version is None else _in_file(version),
        cuda=found.driver,
        gpu_problem=found.problem,
        tensorrt=backend.version() if backend else None,
    )


def driver_version() -> str | None:
    """Version of the kernel driver; None where there is none.

    NVML tells it everywhere, the kernel module's file on Linux proper alone (not under WSL).
    """
    return _from_nvml() or _in_file(_DRIVER_VERSION)


def _from_nvml() -> str | None:
    try:
        nvml = ctypes.CDLL(_NVML)
    except OSError:
        return None
    text = ctypes.create_string_buffer(_LONGEST_VERSION)
    if nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, len(text)):
        return None
    nvml.nvmlShutdown()
    return text.value.decode("ascii", "replace").strip() or None


def _in_file(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
