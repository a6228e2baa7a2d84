"""What trtplug asks of CUDA: a device, streams, events, buffers, kernels.

Addresses are plain integers; as arguments of a kernel they are `numpy.uint64`, since both packages
see by its type what an argument is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    KernelArgument = np.uint64 | np.int32
    """An address, or a number."""

    Extents = tuple[int, int, int]


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

    def upload(self, data: bytes, stream: Stream) -> None:
        """Fills its beginning, and waits until that is done."""

    def download(self, size_bytes: int, stream: Stream) -> bytes:
        """Its beginning, once all earlier work of the stream is done."""

    def free(self) -> None:
        """Gives it back."""


class Kernel(Protocol):
    """A kernel, loaded."""

    def launch(
        self,
        grid: Extents,
        block: Extents,
        shared_bytes: int,
        arguments: Sequence[KernelArgument],
        stream_handle: int,
    ) -> None:
        """Launches it in order with a stream that anyone may have made, by its `CUstream`."""


class CudaLayer(Protocol):
    """A context of one device, current on the thread that opened it."""

    def device(self) -> DeviceFacts:
        """The device in use."""

    def stream(self) -> Stream:
        """A new one."""

    def event(self) -> Event:
        """A new one, that takes times."""

    def buffer(self, size_bytes: int, stream: Stream) -> Buffer:
        """Device memory, ready for what comes next in the stream; at least one byte."""

    def kernel(self, ptx: str, name: str) -> Kernel:
        """Loads a kernel; the driver compiles its PTX for the device."""

    def close(self) -> None:
        """Gives the context back."""
