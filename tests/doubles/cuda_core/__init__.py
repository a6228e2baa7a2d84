"""A double of `cuda.core`: memory is host memory, streams do all at once.

As much of it as trtplug calls; a test holds those names against the real package.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass


@dataclass
class EventOptions:
    timing_enabled: bool | None = False


class Event:
    clock = 0

    def __init__(self, options: EventOptions) -> None:
        self._timed, self.at = bool(options.timing_enabled), None

    def sync(self) -> None:
        pass

    def __sub__(self, other: Event) -> float:
        if not (self._timed and other._timed):
            raise RuntimeError("timing is not enabled")
        return float(self.at - other.at)


LAUNCHES: list[list[object]] = []
"""What was launched, in order. No kernel runs."""


class Stream:
    handle = 0x5EED

    @staticmethod
    def from_handle(handle: int) -> Stream:
        made = Stream()
        made.handle = handle
        return made

    def sync(self) -> None:
        pass

    def record(self, event: Event) -> Event:
        Event.clock += 1
        event.at = Event.clock
        return event


class Buffer:
    def __init__(self, size: int) -> None:
        self._memory, self.size = ctypes.create_string_buffer(size), size

    @property
    def handle(self) -> int:
        return ctypes.addressof(self._memory)

    def _copy(self, dst: Buffer, src: Buffer) -> None:
        if dst.size != src.size:
            raise ValueError("buffer sizes mismatch")
        ctypes.memmove(dst.handle, src.handle, src.size)

    def copy_to(self, dst: Buffer, *, stream: Stream) -> Buffer:
        self._copy(dst, self)
        return dst

    def copy_from(self, src: Buffer, *, stream: Stream) -> None:
        self._copy(self, src)

    def close(self) -> None:
        self._memory = None


class LegacyPinnedMemoryResource:
    def allocate(self, size: int) -> Buffer:
        return Buffer(size)


class Device:
    name = "NVIDIA Double 9000"
    compute_capability = (9, 0)

    def __init__(self, device_id: int) -> None:
        self._current = False

    def set_current(self) -> None:
        self._current = True

    def _need(self) -> None:
        if not self._current:
            raise RuntimeError(
                "Device is not yet initialized, perhaps you forgot to call .set_current()"
            )

    def create_stream(self) -> Stream:
        self._need()
        return Stream()

    def create_event(self, options: EventOptions) -> Event:
        self._need()
        return Event(options)

    def allocate(self, size: int, *, stream: Stream) -> Buffer:
        self._need()
        return Buffer(size)


@dataclass
class LaunchConfig:
    grid: tuple[int, ...] | int | None = None
    block: tuple[int, ...] | int | None = None
    shmem_size: int | None = None


@dataclass
class Kernel:
    name: str


class ObjectCode:
    def __init__(self, image: bytes) -> None:
        self._image = image

    @staticmethod
    def from_ptx(module: bytes) -> ObjectCode:
        return ObjectCode(module)

    def get_kernel(self, name: str) -> Kernel:
        if f".entry {name}(" not in self._image.decode():
            raise RuntimeError("CUDA_ERROR_NOT_FOUND: named symbol not found")
        return Kernel(name)


def launch(stream: Stream, config: LaunchConfig, kernel: Kernel, *kernel_args: object) -> None:
    import numpy as np

    if any(not isinstance(a, np.number) for a in kernel_args):
        raise TypeError("the argument is of unsupported type")
    given = [int(a) for a in kernel_args]
    LAUNCHES.append(
        [kernel.name, config.grid, config.block, config.shmem_size, given, stream.handle]
    )
