"""As much of `pycuda.driver` as trtplug calls; a test holds it against the real source."""

from __future__ import annotations

import ctypes

_CURRENT: list[object] = []
LAUNCHES: list[list[object]] = []
"""What was launched, and waited for, in order. No kernel runs."""


def init(flags: int = 0) -> None:
    pass


class Context:
    def __init__(self) -> None:
        self._held = True

    def push(self) -> None:
        _CURRENT.append(self)

    @staticmethod
    def pop() -> None:
        _CURRENT.pop()

    def detach(self) -> None:
        self._held = False

    @staticmethod
    def synchronize() -> None:
        _need_context()
        LAUNCHES.append(["synchronize"])


class Device:
    def __init__(self, ordinal: int) -> None:
        if ordinal != 0:
            raise RuntimeError("cuDeviceGet failed: invalid device ordinal")

    def name(self) -> str:
        return "NVIDIA Double 9000"

    def compute_capability(self) -> tuple[int, int]:
        return 9, 0

    def retain_primary_context(self) -> Context:
        return Context()


def _need_context() -> None:
    if not _CURRENT:
        raise RuntimeError("invalid device context - no currently active context?")


class Stream:
    def __init__(self, flags: int = 0) -> None:
        _need_context()

    @property
    def handle(self) -> int:
        return 0x5EED

    def synchronize(self) -> None:
        _need_context()


class Event:
    _clock = 0

    def __init__(self, flags: int = 0) -> None:
        _need_context()
        self._at = None

    def record(self, stream: Stream | None = None) -> Event:
        Event._clock += 1
        self._at = Event._clock
        return self

    def synchronize(self) -> Event:
        return self

    def time_since(self, event: Event) -> float:
        return float(self._at - event._at)


class DeviceAllocation:
    def __init__(self, size: int) -> None:
        self._memory = ctypes.create_string_buffer(size)

    def __int__(self) -> int:
        return ctypes.addressof(self._memory)

    def free(self) -> None:
        if self._memory is None:
            raise RuntimeError("freed twice")
        self._memory = None


def mem_alloc(bytes: int) -> DeviceAllocation:
    _need_context()
    if bytes <= 0:
        raise RuntimeError("cuMemAlloc failed: invalid argument")
    return DeviceAllocation(bytes)


def memcpy_htod_async(dest: DeviceAllocation, src: bytes, stream: Stream | None = None) -> None:
    ctypes.memmove(int(dest), bytes(src), len(src))


def memcpy_dtoh_async(dest: bytearray, src: DeviceAllocation, stream: Stream | None = None) -> None:
    dest[:] = ctypes.string_at(int(src), len(dest))


class Function:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(
        self,
        *args: object,
        grid: tuple[int, ...] = (1, 1),
        block: tuple[int, ...] = (1, 1, 1),
        shared: int = 0,
        stream: Stream | None = None,
    ) -> None:
        _need_context()
        import numpy as np

        if any(not isinstance(a, np.number) for a in args):
            raise TypeError("invalid type on parameter")
        LAUNCHES.append([self._name, grid, block, shared, [int(a) for a in args], stream])


class Module:
    def __init__(self, image: bytes) -> None:
        self._image = image

    def get_function(self, name: str) -> Function:
        if f".entry {name}(" not in self._image.decode():
            raise RuntimeError("cuModuleGetFunction failed: named symbol not found")
        return Function(name)


def module_from_buffer(buffer: bytes) -> Module:
    _need_context()
    return Module(bytes(buffer))
