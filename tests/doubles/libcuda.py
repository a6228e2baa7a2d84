"""Libraries of a driver that shows one GPU and can do nothing else, written as machine code."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.doubles.shared_library import RETURN_ZERO, write_library

if TYPE_CHECKING:
    from pathlib import Path

_MAJOR_ATTRIBUTE = 75


def write_libcuda(
    folder: Path,
    *,
    name: str = "NVIDIA Double 9000",
    sm: int = 90,
    uuid: bytes = b"double-gpu-00001",
    cuda: int = 13000,
) -> Path:
    """Writes `libcuda.so.1` into a folder; `cuda` is 1000 times major plus 10 times minor."""
    return write_library(
        folder / "libcuda.so.1",
        {
            "cuInit": RETURN_ZERO,
            "cuDriverGetVersion": _store(cuda) + RETURN_ZERO,
            "cuDeviceGetCount": _store(1) + RETURN_ZERO,
            "cuDeviceGet": bytes.fromhex("8937") + RETURN_ZERO,  # mov [rdi], esi
            "cuDeviceGetName": _store_bytes(name.encode() + b"\0") + RETURN_ZERO,
            "cuDeviceGetUuid_v2": _store_bytes(uuid) + RETURN_ZERO,
            "cuDeviceGetAttribute": _attribute(sm // 10, sm % 10),
            # NVRTC asks for private tables where there is a driver: CUDA_ERROR_NOT_FOUND.
            "cuGetExportTable": b"\xb8" + struct.pack("<i", 500) + b"\xc3",
        },
    )


def write_nvml(folder: Path, *, driver: str = "580.95.05") -> Path:
    """Writes `libnvidia-ml.so.1`, which tells the version of the driver."""
    return write_library(
        folder / "libnvidia-ml.so.1",
        {
            "nvmlInit_v2": RETURN_ZERO,
            "nvmlSystemGetDriverVersion": _store_bytes(driver.encode() + b"\0") + RETURN_ZERO,
            "nvmlShutdown": RETURN_ZERO,
        },
    )


def _store(number: int) -> bytes:
    """mov dword [rdi], number"""
    return b"\xc7\x07" + struct.pack("<i", number)


def _store_bytes(data: bytes) -> bytes:
    """mov rax, eight bytes; mov [rdi + offset], rax; and so on"""
    code = b""
    for at in range(0, len(data), 8):
        code += b"\x48\xb8" + data[at : at + 8].ljust(8, b"\0")
        code += b"\x48\x89\x47" + bytes((at,))
    return code


def _attribute(major: int, minor: int) -> bytes:
    """cmp esi, 75; jne second; mov [rdi], major; jmp end; second: mov [rdi], minor; end: ..."""
    compare = b"\x83\xfe" + bytes((_MAJOR_ATTRIBUTE,))
    return compare + b"\x75\x08" + _store(major) + b"\xeb\x06" + _store(minor) + RETURN_ZERO
