"""Run in a process that has a double of pycuda: all of the layer, once. Prints what it saw."""

import json

import numpy as np

from trtplug.backends.cuda_layer.find import layer_package, open_layer

layer = open_layer()
stream, begin, end = layer.stream(), layer.event(), layer.event()
begin.record(stream)
buffer = layer.buffer(8, stream)
buffer.upload(b"12345678", stream)
end.record(stream)
empty = layer.buffer(0, stream)
empty.upload(b"", stream)
seen = {
    "layer": type(layer).__name__,
    "found": layer_package(),
    "name": layer.device().name,
    "cc": layer.device().compute_capability,
    "handle": stream.handle,
    "address": buffer.address,
    "data": buffer.download(5, stream).decode(),
    "ms": end.ms_since(begin),
    "empty": empty.download(0, stream).decode(),
}
kernel = layer.kernel(".visible .entry k(\n)\n{\n}", "k")
kernel.launch((2, 3, 4), (32, 1, 1), 16, (np.uint64(2**40), np.int32(5)), 77)
if seen["layer"] == "PycudaLayer":
    from pycuda.driver import LAUNCHES
else:
    from cuda.core import LAUNCHES
seen["launches"] = LAUNCHES
buffer.free()
empty.free()
layer.close()
print(json.dumps(seen))  # noqa: T201
