"""Run on the double: one model through the parser, and layer by layer through the network API.

Arguments: folder of a kit, a model of `plugin_models`. Prints the form, and whether the two
networks came out as the same engine with the same timing cache.
"""

import json
import sys

import onnx
import tensorrt as trt
from onnx import numpy_helper

from trtplug.backends.trt_config import creation_flags
from trtplug.backends.trt_plugin_network import add_plugin_layer
from trtplug.backends.trt_plugins import offer_plugins

logger = trt.Logger(trt.Logger.ERROR)
builder = trt.Builder(logger)
form = offer_plugins(trt, logger, [trt.get_plugin_registry()], sys.argv[1])
flags = creation_flags(trt, ahead_of_time=form == "ahead-of-time")
proto = onnx.load(sys.argv[2])
parsed = builder.create_network(flags)
parser = trt.OnnxParser(parsed, logger)
assert parser.parse_from_file(sys.argv[2])

made = builder.create_network(flags)
tensors = {}
for position in range(parsed.num_inputs):
    given = parsed.get_input(position)
    tensors[given.name] = made.add_input(given.name, given.dtype, given.shape)
for weights in proto.graph.initializer:
    constant = made.add_constant(tuple(weights.dims), numpy_helper.to_array(weights))
    tensors[weights.name] = constant.get_output(0)
    tensors[weights.name].name = weights.name
for node in proto.graph.node:
    (site,) = (a.s.decode() for a in node.attribute if a.name == "site")
    inputs = [tensors[n] for n in node.input]
    layer = add_plugin_layer(trt, made, form, node.op_type, inputs, site, node.name)
    assert layer.name == node.name
    output = layer.get_output(0)
    output.name = node.output[0]
    made.mark_output(output)


def build(network):
    config = builder.create_builder_config()
    cache = config.create_timing_cache(b"")
    config.set_timing_cache(cache, False)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.add_optimization_profile(builder.create_optimization_profile())
    engine = bytes(builder.build_serialized_network(network, config))
    return json.loads(engine[64:]), bytes(cache.serialize())


(one, first), (other, second) = build(parsed), build(made)
print(json.dumps({"form": form, "engines": one == other, "caches": first == second}))  # noqa: T201
assert len(one["plugins"]) == len(proto.graph.node)
