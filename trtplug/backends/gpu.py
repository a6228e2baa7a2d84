"""The local GPU, asked through the CUDA driver itself; no package needed.

Source of names and numbers: CUDA Driver API, cuDeviceGetAttribute, CUdevice_attribute.
"""

from __future__ import annotations

import ctypes
import logging
from dataclasses import dataclass
from pathlib import Path

from trtplug.target import Sm

_log = logging.getLogger(__name__)


_MAJOR = 75
_MINOR = 76
_SUCCESS = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU of this machine."""

    name: str
    sm: Sm
    uuid: str = ""
    """32 hexadecimal digits; empty where the driver does not report it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSearch:
    """What a look for GPUs found."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    """CUDA version of the driver, such as `13.0`; None without a driver."""
    problem: str
    """Why there is none; empty where there is one."""


def find_gpus() -> GpuSearch:
    """All GPUs that the CUDA driver shows; never raises."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        _log.debug("no CUDA driver: %s", error)
        return GpuSearch(gpus=(), driver=None, problem="no CUDA driver (libcuda.so.1) is installed")
    version, count = ctypes.c_int(), ctypes.c_int()
    status = cuda.cuInit(0)
    cuda.cuDriverGetVersion(ctypes.byref(version))
    driver = f"{version.value // 1000}.{version.value % 1000 // 10}" if version.value else None
    if status != _SUCCESS:
        problem = f"the CUDA driver does not start (cuInit gave error {status})"
        return GpuSearch(gpus=(), driver=driver, problem=problem)
    cuda.cuDeviceGetCount(ctypes.byref(count))
    gpus = tuple(_gpu(cuda, position) for position in range(count.value))
    return GpuSearch(gpus=gpus, driver=driver, problem="" if gpus else "the driver shows no GPU")


def _gpu(cuda: ctypes.CDLL, position: int) -> Gpu:
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    cuda.cuDeviceGet(ctypes.byref(device), position)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device)
    cuda.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, device)
    return Gpu(
        name=name.value.decode(errors="replace"),
        sm=Sm(major.value * 10 + minor.value),
        uuid=_uuid(cuda, device),
    )


def _uuid(cuda: ctypes.CDLL, device: ctypes.c_int) -> str:
    ask = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    raw = (ctypes.c_ubyte * 16)()
    return bytes(raw).hex() if ask is not None and ask(raw, device) == _SUCCESS else ""


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


def driver_version() -> str | None:
    """Version of the kernel driver; None where there is none.

    NVML reports it everywhere, the kernel module's file on Linux proper alone (not under WSL).
    """
    return _from_nvml() or read_version(_DRIVER_VERSION)


def _from_nvml() -> str | None:
    try:
        nvml = ctypes.CDLL(_NVML)
    except OSError as error:
        _log.debug("no NVML: %s", error)
        return None
    text = ctypes.create_string_buffer(_LONGEST_VERSION)
    if nvml.nvmlInit_v2() or nvml.nvmlSystemGetDriverVersion(text, len(text)):
        return None
    nvml.nvmlShutdown()
    return text.value.decode("ascii", "replace").strip() or None


def read_version(file: Path) -> str | None:
    """What a file says; None where it cannot be read."""
    try:
        return file.read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        _log.debug("no version in %s: %s", file, error)
        return None
