"""One build at a time on one GPU: two at once would time each other's kernels.

The lock is one of the kernel's on a file in the system's temporary folder, so that all users of a
machine share it, and it goes with its holder however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.backends.launch import ignoring
from trtplug.errors import GpuBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trtplug.backends.gpu import Gpu

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def holding_gpu(
    gpu: Gpu,
    *,
    wait: bool,
    on_wait: Callable[[str], None] | None = None,
    folder: Path | None = None,
) -> Iterator[None]:
    """Holds a GPU for as long as the block runs.

    Args:
        gpu: by its UUID where that is known, else by its name.
        wait: wait for another build to end.
        on_wait: receives a message when it has to wait.
        folder: of the lock files; the system's temporary folder by default.

    Raises:
        GpuBusyError: another build holds it, and `wait` is false.
    """
    handle = _open(lock_file(gpu, folder))
    try:
        if not _take(handle):
            holder = _holder(handle)
            if not wait:
                raise GpuBusyError(gpu=gpu.name, holder=holder)
            _log.info("waiting for another build on %s (%s)", gpu.name, holder)
            if on_wait is not None:
                on_wait(f"waiting for another build on {gpu.name} ({holder})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        _sign(handle)
        yield
    finally:
        os.close(handle)


def lock_file(gpu: Gpu, folder: Path | None = None) -> Path:
    """Where the lock of a GPU lies."""
    name = gpu.uuid or "".join(c if c.isalnum() else "-" for c in gpu.name)
    return (folder or Path(tempfile.gettempdir())) / f"trtplug-gpu-{name}.lock"


def _open(path: Path) -> int:
    """Another user's file can be locked, and not be written."""
    for _ in range(2):
        for flags in (os.O_RDWR, os.O_RDONLY):
            with ignoring(FileNotFoundError, PermissionError):
                return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        with ignoring(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def _take(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        _log.debug("the GPU is locked: %s", error)
        return False
    return True


def _sign(handle: int) -> None:
    with ignoring(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()}".encode(), 0)


def _holder(handle: int) -> str:
    return os.pread(handle, 100, 0).decode("ascii", "replace")
