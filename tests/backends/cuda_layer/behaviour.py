"""Run in a process that has a double of pycuda: all of the layer, once. Prints what it saw."""

import json

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
    "package": layer.package,
    "found": layer_package(),
    "name": layer.device().name,
    "cc": layer.device().compute_capability,
    "handle": stream.handle,
    "address": buffer.address,
    "size": buffer.size_bytes,
    "data": buffer.download(5, stream).decode(),
    "ms": end.ms_since(begin),
    "empty": empty.download(0, stream).decode(),
}
buffer.free()
empty.free()
layer.close()
print(json.dumps(seen))  # noqa: T201
