"""What trtplug asks of CUDA: a device, streams, events, buffers. Addresses are plain integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """The device in use."""

    name: str
    compute_capability: tuple[int, int]


class Stream(Protocol):
    """Work in order."""

    @property
    def handle(self) -> int:
        """`CUstream`, as TensorRT takes it."""

    def synchronize(self) -> None:
        """Waits until all of its work is done; raises what went wrong in it."""


class Event(Protocol):
    """A point in a stream."""

    def record(self, stream: Stream) -> None:
        """Sets the point."""

    def ms_since(self, earlier: Event) -> float:
        """Milliseconds between two points, once both are reached; waits for it."""


class Buffer(Protocol):
    """Device memory."""

    @property
    def address(self) -> int:
        """`CUdeviceptr`."""

    @property
    def size_bytes(self) -> int:
        """As asked for."""

    def upload(self, data: bytes, stream: Stream) -> None:
        """Fills its beginning, and waits until that is done."""

    def download(self, size_bytes: int, stream: Stream) -> bytes:
        """Its beginning, once all earlier work of the stream is done."""

    def free(self) -> None:
        """Gives it back."""


class CudaLayer(Protocol):
    """A context of one device, current on the thread that opened it."""

    package: str

    def device(self) -> DeviceFacts:
        """The device in use."""

    def stream(self) -> Stream:
        """A new one."""

    def event(self) -> Event:
        """A new one, that takes times."""

    def buffer(self, size_bytes: int, stream: Stream) -> Buffer:
        """Device memory, ready for what comes next in the stream; at least one byte."""

    def close(self) -> None:
        """Gives the context back."""
