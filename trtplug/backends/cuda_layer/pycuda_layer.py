"""CUDA through pycuda; the only module that imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtplug.backends.cuda_layer.interface import DeviceFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.backends.cuda_layer.interface import Event, Extents, KernelArgument, Stream


class PycudaStream:
    """See `interface.Stream`."""

    def __init__(self, driver: Any) -> None:
        self.stream = driver.Stream()

    @property
    def handle(self) -> int:
        """`CUstream`."""
        return int(self.stream.handle)

    def synchronize(self) -> None:
        """Waits."""
        self.stream.synchronize()


class PycudaEvent:
    """See `interface.Event`."""

    def __init__(self, driver: Any) -> None:
        self.event = driver.Event()

    def record(self, stream: Stream) -> None:
        """Sets the point."""
        assert isinstance(stream, PycudaStream)
        self.event.record(stream.stream)

    def ms_since(self, earlier: Event) -> float:
        """Milliseconds between two points."""
        assert isinstance(earlier, PycudaEvent)
        self.event.synchronize()
        return float(self.event.time_since(earlier.event))


class PycudaBuffer:
    """See `interface.Buffer`."""

    def __init__(self, driver: Any, size_bytes: int) -> None:
        self._driver = driver
        self._memory = driver.mem_alloc(max(1, size_bytes))
        self._size_bytes = size_bytes

    @property
    def address(self) -> int:
        """`CUdeviceptr`."""
        return int(self._memory)

    @property
    def size_bytes(self) -> int:
        """As asked for."""
        return self._size_bytes

    def upload(self, data: bytes, stream: Stream) -> None:
        """Fills its beginning."""
        assert isinstance(stream, PycudaStream)
        if data:
            self._driver.memcpy_htod_async(self._memory, data, stream.stream)
            stream.synchronize()  # the copy reads `data`, which may go away now

    def download(self, size_bytes: int, stream: Stream) -> bytes:
        """Its beginning."""
        assert isinstance(stream, PycudaStream)
        data = bytearray(size_bytes)
        if data:
            self._driver.memcpy_dtoh_async(data, self._memory, stream.stream)
        stream.synchronize()
        return bytes(data)

    def free(self) -> None:
        """Gives it back."""
        self._memory.free()


class PycudaKernel:
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
        grid: Extents,
        block: Extents,
        shared_bytes: int,
        arguments: Sequence[KernelArgument],
        stream_handle: int,  # noqa: ARG002 - see above
    ) -> None:
        """Launches, with the context idle before and after."""
        self._context.synchronize()
        self._function(*arguments, grid=grid, block=block, shared=shared_bytes)
        self._context.synchronize()


class PycudaLayer:
    """See `interface.CudaLayer`. Takes the primary context, which TensorRT's runtime uses too."""

    package = "pycuda"

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

    def stream(self) -> PycudaStream:
        """A new one."""
        return PycudaStream(self._driver)

    def event(self) -> PycudaEvent:
        """A new one."""
        return PycudaEvent(self._driver)

    def buffer(self, size_bytes: int, stream: Stream) -> PycudaBuffer:  # noqa: ARG002 - no order here
        """Device memory."""
        return PycudaBuffer(self._driver, size_bytes)

    def kernel(self, ptx: str, name: str) -> PycudaKernel:
        """Loads a kernel."""
        return PycudaKernel(self._driver, self._context, ptx, name)

    def close(self) -> None:
        """Gives the context back."""
        self._context.pop()
        self._context.detach()
