"""Runs our just-in-time plugin as TensorRT would, on the real bindings; prints what it launches.

Arguments as `real_quick_plugins.py`. Dimensions are doubles, and so is the CUDA layer: it writes
down what is launched.
"""

import itertools
import json
import sys
from pathlib import Path

sys.path[:0] = [*sys.argv[1].split(":"), str(Path(__file__).parents[3])]
import numpy as np  # noqa: E402
import tensorrt as trt  # noqa: E402

from tests.backends.plugin_expressions import Builder, Expression, Registry  # noqa: E402
from trtplug.backends.trt_jit_plugin import fields_can_be_read, register_jit_plugins  # noqa: E402
from trtplug.backends.trt_plugin_sites import TYPE_NAMES, PluginSites  # noqa: E402
from trtplug.ops.plugin_layer import (  # noqa: E402
    KEY_ATTRIBUTES,
    LAYER_INPUTS,
    layer_type,
    site_key,
)

# The library makes these; here they hold doubles.
trt.DimsExprs = list

BUILD, RUN = Registry(), Registry()
LAUNCHES = []


class Kernel:
    def __init__(self, ptx, name):
        self.ptx, self.name = ptx, name

    def launch(self, grid, block, shared_bytes, arguments, stream_handle):
        assert stream_handle == 99
        numbers = [int(a) for a in arguments if isinstance(a, np.int32)]
        addresses = [int(a) for a in arguments if isinstance(a, np.uint64)]
        LAUNCHES.append(
            {"grid": grid, "block": block, "shared": shared_bytes, "arguments": numbers}
            | {"addresses": addresses, "kernel": self.name, "ptx": self.ptx}
        )


class Layer:
    def kernel(self, ptx, name):
        return Kernel(ptx, name)


def described(dims, dtype, layout, ends):
    outer, inner = trt.DynamicPluginTensorDesc(), trt.PluginTensorDesc()
    inner.dims, inner.type, inner.format = trt.Dims(dims), dtype, layout
    outer.desc = inner
    outer.min, outer.opt, outer.max = map(trt.Dims, ends)
    return outer


def fields_of(site):
    values = [np.array([n], np.int32) for n in site_key(site)]
    kind = trt.PluginFieldType.INT32
    made = [trt.PluginField(n, v, kind) for n, v in zip(KEY_ATTRIBUTES, values, strict=True)]
    return trt.PluginFieldCollection(made)


def answer(request):
    site = SITES.find(*site_key(request["site"]))
    name = layer_type(site.op, residual=site.problem.has_residual)
    creator = BUILD.get_creator(name, "1", "trtplug")
    assert [f.name for f in creator.field_names] == list(KEY_ATTRIBUTES)
    plugin = creator.create_plugin("n", fields_of(request["site"]), trt.TensorRTPhase.BUILD)
    count = len(LAYER_INPUTS[name])
    residual = site.problem.has_residual
    x_type, own = (getattr(trt.DataType, TYPE_NAMES[t]) for t in (site.x_dtype, site.problem.dtype))
    packed = [own, trt.DataType.FLOAT] * ((count - 1) // 2)
    types = [x_type, *packed, *[own] * residual, own]
    assert (plugin.num_outputs, plugin.get_output_data_types(types[:-1])) == (1, [own])
    kinds = (trt.PluginCapabilityType.CORE, trt.PluginCapabilityType.BUILD)
    assert all(plugin.get_capability_interface(k) is plugin for k in kinds)
    found = []
    for layouts in itertools.product(("LINEAR", "HWC8", "CHW32"), repeat=3):
        if all_taken(plugin, request, site, types, spread(layouts, len(packed), residual), count):
            formats = spread(layouts, len(packed), residual)
            tensors = tensors_at(request, site, types, formats)
            plugin.configure_plugin(tensors[:count], tensors[count:])
            offered = plugin.get_valid_tactics()
            found += [candidate(plugin, request, site, types, formats, n) for n in offered]
    return {"identity": plugin.timing_cache_id, "metadata": plugin.metadata_string} | {
        "candidates": found
    }


def spread(layouts, packed, residual):
    """Formats of x, packed tensors, residual and y, from those of x, packed and y."""
    x, middle, y = (getattr(trt.TensorFormat, n) for n in layouts)
    return [x, *[middle] * packed, *[y] * residual, y]


def tensors_at(request, site, types, formats):
    ends = [request[k] for k in ("min", "opt", "max")]
    dims = [a if a == b else -1 for a, b in zip(ends[0], ends[2], strict=True)]
    y_ends = [site.problem.output(tuple(e)) for e in ends]
    y_dims = [dims[0], site.problem.outputs, *dims[2:]]
    rows = [(dims, ends)]
    rows += [([7], [[7]] * 3)] * (len(types) - 2 - site.problem.has_residual)
    rows += [(y_dims, y_ends)] * (1 + site.problem.has_residual)
    return [described(d, t, f, e) for (d, e), t, f in zip(rows, types, formats, strict=True)]


def all_taken(plugin, request, site, types, formats, count):
    tensors = tensors_at(request, site, types, formats)
    places = range(len(tensors))
    return all(plugin.supports_format_combination(p, tensors, count) for p in places)


def candidate(plugin, request, site, types, formats, number):
    clone = plugin.clone()
    clone.set_tactic(number)
    assert clone.timing_cache_id == plugin.timing_cache_id
    # A context's clone must not forget it: TensorRT need not say it again.
    assert clone.clone().tactic == number
    kept = clone.get_fields_to_serialize()
    running = clone
    if fields_can_be_read(trt):
        creator = RUN.get_creator(clone.plugin_name, "1", "trtplug")
        running = creator.create_plugin("n", kept, trt.TensorRTPhase.RUNTIME)
    running = running.attach_to_context(None)
    running.set_tactic(number)
    launches = []
    for sizes in request["at"]:
        x = [
            Expression(n, a == b)
            for n, a, b in zip(sizes, request["min"], request["max"], strict=True)
        ]
        (y,) = running.get_output_shapes([x], [], Builder())
        inside = [trt.PluginTensorDesc() for _ in types]
        inside[0].dims = trt.Dims(sizes)
        running.on_shape_change(inside[:-1], inside[-1:])
        addresses = list(range(1000, 1000 + len(types)))
        running.enqueue(inside[:-1], inside[-1:], addresses[:-1], addresses[-1:], 0, 99)
        launches.append(LAUNCHES.pop() | {"sizes": sizes, "output": [e.hidden for e in y]})
        assert launches[-1].pop("addresses") == addresses
    names = {launch.pop("kernel") for launch in launches}
    texts = {launch.pop("ptx") for launch in launches}
    (kernel,), (ptx,) = names, texts
    return {
        "formats": [f.name for f in formats],
        "types": [t.name for t in types],
        "tactic": number,
        "kernel": kernel,
        "ptx": ptx,
        "launches": launches,
    }


def answer_or_error(request):
    try:
        return answer(request)
    except ValueError as error:
        return {"error": str(error)}


SITES = PluginSites(Path(sys.argv[2]))
register_jit_plugins(trt, BUILD, SITES, Layer)
register_jit_plugins(trt, RUN, None, Layer)
said = [answer_or_error(r) for r in json.loads(sys.argv[3])]
json.dump([*said, {"readable": fields_can_be_read(trt)}], sys.stdout)
