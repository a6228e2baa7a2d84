"""Runs our quick plugins through the real `tensorrt.plugin`; prints what TensorRT would receive.

Arguments: folders of the bindings and of the package `tensorrt` (`:` between them), folder of a
kit, and a JSON list of requests, each with `site`, `min`, `opt`, `max` (sizes of x) and `at` (a
list of sizes). The bindings are real; dimensions and what holds them are doubles.
"""

import json
import sys
from pathlib import Path

sys.path[:0] = [*sys.argv[1].split(":"), str(Path(__file__).parents[3])]
import numpy as np  # noqa: E402
import tensorrt as trt  # noqa: E402

from tests.backends.trt.plugin_expressions import Builder, Expression, Registry  # noqa: E402

REGISTRY = Registry()


class ISymExpr:
    def __init__(self):
        self.type = self.dtype = self.expr = None


class LaunchParams:
    """Expressions as `IKernelLaunchParams` takes them."""

    names = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "shared_mem")


class Arguments:
    """As `ISymExprs`: a count, then items."""

    nbSymExprs = 0

    def __init__(self):
        self.items = {}

    def __setitem__(self, index, item):
        assert index < self.nbSymExprs
        assert item.type == trt.PluginArgType.INT
        assert item.dtype == trt.PluginArgDataType.INT32
        self.items[index] = item.expr.hidden


trt.IDimensionExpr = Expression
trt.ISymExpr = ISymExpr
trt.DimsExprs = lambda length: [None] * length
trt.get_plugin_registry = lambda: REGISTRY

from trtplug.backends.trt.plugins import (  # noqa: E402  # noqa: E402
    TYPE_NAMES,
    PluginSites,
    has_quick_plugins,
    plugin_package,
    register_quick_plugins,
)
from trtplug.ops.plugin_layer import KEY_ATTRIBUTES, LAYER_INPUTS, layer_type, site_key  # noqa: E402

trtp = plugin_package(trt)
SITES = PluginSites(Path(sys.argv[2]))


def tensor(dims, low, opt, high, dtype, layout):
    described = trt.DynamicPluginTensorDesc()
    inner = trt.PluginTensorDesc()
    inner.dims, inner.type, inner.format = trt.Dims(dims), dtype, layout
    described.desc = inner
    described.min, described.opt, described.max = map(trt.Dims, (low, opt, high))
    return described


def created(site, name):
    """A plugin as the parser makes it."""
    creator = REGISTRY.get_creator(name, "1", "trtplug")
    assert [f.name for f in creator.field_names] == list(KEY_ATTRIBUTES)
    # The parser makes a field of int32 out of an ONNX integer.
    values = [np.array([n], np.int32) for n in site_key(site)]
    kind = trt.PluginFieldType.INT32
    fields = [trt.PluginField(n, v, kind) for n, v in zip(KEY_ATTRIBUTES, values, strict=True)]
    fields = trt.PluginFieldCollection(fields)
    request = trt.QuickPluginCreationRequest.STRICT_AOT
    return creator.create_plugin(name, "trtplug", fields, trt.TensorRTPhase.BUILD, request)


def shapes(plugin, given, low, high, sizes, count):
    """Output sizes at `sizes`; sizes that may vary are no constants."""
    x = [Expression(n, a == b) for n, a, b in zip(sizes, low, high, strict=True)]
    packed = [[Expression(7, True)]] * (count - 1 - given.problem.has_residual)
    residual = []
    if given.problem.has_residual:
        residual = [[Expression(n, True) for n in given.problem.output(tuple(sizes))]]
    (made,) = plugin.get_output_shapes([x, *packed, *residual], [], Builder())
    assert [e.is_constant() for e in made] == [a == b for a, b in zip(low, high, strict=True)]
    return [e.hidden for e in made]


def answer(request):
    given = SITES.find(*site_key(request["site"]))
    name = layer_type(given.op, residual=given.problem.has_residual)
    count = len(LAYER_INPUTS[name])
    low, opt, high = (request[k] for k in ("min", "opt", "max"))
    plugin = created(request["site"], name)
    assert plugin.get_num_outputs() == 1
    own = getattr(trt.DataType, TYPE_NAMES[given.problem.dtype])
    packed = [own, trt.DataType.FLOAT] * ((count - 1) // 2)
    types = [own, *packed, *[own] * given.problem.has_residual]
    ranks = [4, *[1] * len(packed), *[4] * given.problem.has_residual]
    assert list(plugin.get_output_data_types(types, ranks)) == [own]
    shapes(plugin, given, low, high, opt, count)
    dims = [n if n == m else -1 for n, m in zip(low, high, strict=True)]
    y_dims = [dims[0], given.problem.outputs, *dims[2:]]
    linear = trt.TensorFormat.LINEAR

    def tensors(formats):
        rows = [(dims, low, opt, high)]
        rows += [([7], [7], [7], [7])] * len(packed)
        rows += [(y_dims, *[given.problem.output(tuple(s)) for s in (low, opt, high)])] * (
            1 + given.problem.has_residual
        )
        both = zip(rows, [*types, own], formats, strict=True)
        return [tensor(*row, dtype, layout) for row, dtype, layout in both]

    offered = plugin.get_supported_format_combinations(tensors([linear] * (count + 1)), count)
    found = []
    for begin in range(0, len(offered), count + 1):
        combination = offered[begin : begin + count + 1]
        assert [d.type for d in combination] == [*types, own]
        described = tensors([d.format for d in combination])
        plugin.configure_plugin(described[:count], described[count:])
        for tactic in sorted(plugin.get_valid_tactics()):
            clone = plugin.clone()
            clone.set_tactic(tactic)
            launches = [
                launched(clone, given, request, sizes, described, count) for sizes in request["at"]
            ]
            kernel, ptx = clone.get_kernel(
                [d.desc for d in described[:count]], [d.desc for d in described[count:]]
            )
            found.append(
                {
                    "formats": [d.format.name for d in combination],
                    "types": [d.type.name for d in combination],
                    "tactic": tactic,
                    "kernel": kernel,
                    "ptx": ptx.decode(),
                    "launches": launches,
                    "identity": clone.get_timing_cache_id(),
                    "metadata": clone.get_metadata_string(),
                }
            )
    return {"identity": plugin.get_timing_cache_id(), "candidates": found, "stock": stock()}


def launched(plugin, given, request, sizes, described, count):
    output = shapes(plugin, given, request["min"], request["max"], sizes, count)
    parameters, arguments = LaunchParams(), Arguments()
    plugin.get_launch_params([], described, count, parameters, arguments, Builder())
    values = {n: getattr(parameters, n).expr.hidden for n in LaunchParams.names}
    for n in ("block_x", "block_y", "block_z", "shared_mem"):
        assert getattr(parameters, n).expr.is_constant()
    return {
        "sizes": sizes,
        "output": output,
        "grid": [values[f"grid_{a}"] for a in "xyz"],
        "block": [values[f"block_{a}"] for a in "xyz"],
        "shared": values["shared_mem"],
        "arguments": [arguments.items[i] for i in range(arguments.nbSymExprs)],
    }


def stock():
    """What the stock plugin's identity is, which is why ours has one of its own."""
    made = trtp._plugin_class._TemplateAOTPlugin("n", "trtplug", 1)
    return made.get_timing_cache_id()


def answer_or_error(request):
    try:
        return answer(request)
    except ValueError as error:
        return {"error": str(error)}


assert has_quick_plugins(trt)
register_quick_plugins(trt, trt.Logger(), REGISTRY, SITES)
json.dump([answer_or_error(r) for r in json.loads(sys.argv[3])], sys.stdout)
