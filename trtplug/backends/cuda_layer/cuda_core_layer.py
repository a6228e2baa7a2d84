"""CUDA through cuda-core; the only module of this kind that imports it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from trtplug.backends.cuda_layer.interface import DeviceFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.cuda_layer import interface


class _Stream:
    def __init__(self, device: Any) -> None:
        self.stream = device.create_stream()

    @property
    def handle(self) -> int:
        return int(self.stream.handle)

    def synchronize(self) -> None:
        self.stream.sync()


class _Event:
    def __init__(self, core: Any, device: Any) -> None:
        self.event = device.create_event(core.EventOptions(timing_enabled=True))

    def record(self, stream: interface.Stream) -> None:
        assert isinstance(stream, _Stream)
        stream.stream.record(self.event)

    def ms_since(self, earlier: interface.Event) -> float:
        assert isinstance(earlier, _Event)
        self.event.sync()
        return float(self.event - earlier.event)


class _Buffer:
    """See `interface.Buffer`. Copies go through pinned memory: buffers copy to buffers here."""

    def __init__(self, core: Any, device: Any, size_bytes: int, stream: _Stream) -> None:
        self._host = core.LegacyPinnedMemoryResource()
        self._memory = device.allocate(max(1, size_bytes), stream=stream.stream)
        self._size_bytes = size_bytes

    @property
    def address(self) -> int:
        return int(self._memory.handle)

    def upload(self, data: bytes, stream: interface.Stream) -> None:
        assert isinstance(stream, _Stream)
        staging = self._staging()
        ctypes.memmove(int(staging.handle), data, min(len(data), self._size_bytes))
        self._memory.copy_from(staging, stream=stream.stream)
        stream.synchronize()
        staging.close()

    def download(self, size_bytes: int, stream: interface.Stream) -> bytes:
        assert isinstance(stream, _Stream)
        staging = self._staging()
        self._memory.copy_to(staging, stream=stream.stream)
        stream.synchronize()
        data = ctypes.string_at(int(staging.handle), size_bytes)
        staging.close()
        return data

    def free(self) -> None:
        self._memory.close()

    def _staging(self) -> Any:
        # Of the same size: buffers are copied whole.
        return self._host.allocate(max(1, self._size_bytes))


class _Kernel:
    def __init__(self, core: Any, ptx: str, name: str) -> None:
        self._core = core
        self._kernel = core.ObjectCode.from_ptx(ptx.encode()).get_kernel(name)

    def launch(
        self,
        grid: interface.Extents,
        block: interface.Extents,
        shared_bytes: int,
        arguments: Sequence[interface.KernelArgument],
        stream_handle: int,
    ) -> None:
        stream = self._core.Stream.from_handle(stream_handle)
        config = self._core.LaunchConfig(grid=grid, block=block, shmem_size=shared_bytes)
        self._core.launch(stream, config, self._kernel, *arguments)


class CoreLayer:
    """See `interface.CudaLayer`. Takes the primary context, which TensorRT's runtime uses too."""

    def __init__(self, position: int) -> None:
        import cuda.core as core

        self._core = core
        self._device = core.Device(position)
        self._device.set_current()

    def device(self) -> DeviceFacts:
        """The device in use."""
        major, minor = self._device.compute_capability
        return DeviceFacts(name=self._device.name, compute_capability=(major, minor))

    def stream(self) -> _Stream:
        """A new one."""
        return _Stream(self._device)

    def event(self) -> _Event:
        """A new one."""
        return _Event(self._core, self._device)

    def buffer(self, size_bytes: int, stream: interface.Stream) -> _Buffer:
        """Device memory."""
        assert isinstance(stream, _Stream)
        return _Buffer(self._core, self._device, size_bytes, stream)

    def kernel(self, ptx: str, name: str) -> _Kernel:
        """Loads a kernel."""
        return _Kernel(self._core, ptx, name)

    def close(self) -> None:
        """The primary context stays: it is shared with the CUDA runtime."""
