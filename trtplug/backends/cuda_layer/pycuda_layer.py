"""CUDA through pycuda; the only module that imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.backends.cuda_layer.interface import DeviceFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.cuda_layer import interface


class _Stream:
    def __init__(self, driver: Any) -> None:
        self.stream = driver.Stream()

    @property
    def handle(self) -> int:
        return int(self.stream.handle)

    def synchronize(self) -> None:
        self.stream.synchronize()


class _Event:
    def __init__(self, driver: Any) -> None:
        self.event = driver.Event()

    def record(self, stream: interface.Stream) -> None:
        assert isinstance(stream, _Stream)
        self.event.record(stream.stream)

    def ms_since(self, earlier: interface.Event) -> float:
        assert isinstance(earlier, _Event)
        self.event.synchronize()
        return float(self.event.time_since(earlier.event))


class _Buffer:
    def __init__(self, driver: Any, size_bytes: int) -> None:
        self._driver = driver
        self._memory = driver.mem_alloc(max(1, size_bytes))
        self._size_bytes = size_bytes

    @property
    def address(self) -> int:
        return int(self._memory)

    def upload(self, data: bytes, stream: interface.Stream) -> None:
        assert isinstance(stream, _Stream)
        if data:
            self._driver.memcpy_htod_async(self._memory, data, stream.stream)
            stream.synchronize()  # the copy reads `data`, which may go away now

    def download(self, size_bytes: int, stream: interface.Stream) -> bytes:
        assert isinstance(stream, _Stream)
        data = bytearray(size_bytes)
        if data:
            self._driver.memcpy_dtoh_async(data, self._memory, stream.stream)
        stream.synchronize()
        return bytes(data)

    def free(self) -> None:
        self._memory.free()


class _Kernel:
    """See `interface.Kernel`.

    pycuda has no way to wrap a stream that it did not make. So a launch waits for all that the
    context has under way, and for its own end: right on any stream, slow, and not to be captured in
    a CUDA graph.
    """

    def __init__(self, driver: Any, context: Any, ptx: str, name: str) -> None:
        self._context = context
        self._module = driver.module_from_buffer(ptx.encode())
        self._function = self._module.get_function(name)

    def launch(
        self,
        grid: interface.Extents,
        block: interface.Extents,
        shared_bytes: int,
        arguments: Sequence[interface.KernelArgument],
        stream_handle: int,  # noqa: ARG002 - see above
    ) -> None:
        self._context.synchronize()
        self._function(*arguments, grid=grid, block=block, shared=shared_bytes)
        self._context.synchronize()


class PycudaLayer:
    """See `interface.CudaLayer`. Takes the primary context, which TensorRT's runtime uses too."""

    def __init__(self, position: int) -> None:
        import pycuda.driver as driver

        self._driver = driver
        driver.init()
        self._device = driver.Device(position)
        self._context = self._device.retain_primary_context()
        self._context.push()

    def device(self) -> DeviceFacts:
        """The device in use."""
        major, minor = self._device.compute_capability()
        return DeviceFacts(name=self._device.name(), compute_capability=(major, minor))

    def stream(self) -> _Stream:
        """A new one."""
        return _Stream(self._driver)

    def event(self) -> _Event:
        """A new one."""
        return _Event(self._driver)

    def buffer(self, size_bytes: int, stream: interface.Stream) -> _Buffer:  # noqa: ARG002 - no order here
        """Device memory."""
        return _Buffer(self._driver, size_bytes)

    def kernel(self, ptx: str, name: str) -> _Kernel:
        """Loads a kernel."""
        return _Kernel(self._driver, self._context, ptx, name)

    def close(self) -> None:
        """Gives the context back."""
        self._context.pop()
        self._context.detach()
