"""Run in a process that has the double: a quick plugin that writes down how it is called."""

import sys

import tensorrt as trt
import tensorrt.plugin as trtp

CALLS = []


@trtp.register("demo::Twice")
def describe(x: trtp.TensorDesc) -> trtp.TensorDesc:
    CALLS.append("shape" if x.shape_expr[0].is_fake is False else "type")
    y = x.like()
    y.shape_expr[1] = x.shape_expr[1] * 2
    return y


@trtp.autotune("demo::Twice")
def autotune(x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc]) -> list[trtp.AutoTuneCombination]:
    CALLS.append("formats")
    # Of a strongly typed network's combinations those of other types are passed over.
    return [
        trtp.AutoTuneCombination("FP32|FP16, FP32|FP16", "LINEAR", TACTICS),
        trtp.AutoTuneCombination("FP16, FP16", "HWC8", [9]),
    ]


@trtp.aot_impl("demo::Twice")
def implement(
    x: trtp.TensorDesc, outputs: tuple[trtp.TensorDesc], tactic: int
) -> tuple[str, str, trtp.KernelLaunchParams, trtp.SymIntExprs]:
    CALLS.append(f"kernel {tactic}")
    if tactic == 13:
        raise RuntimeError("unlucky")
    launch = trtp.KernelLaunchParams(grid_x=7, block_x=32)
    return "twice", f"// {tactic}", launch, trtp.SymIntExprs(0)


logger = trt.Logger(trt.Logger.VERBOSE)
model = open(sys.argv[1], "rb").read()  # noqa: PTH123, SIM115


def build(tactics, blob=b""):
    """The engine and the cache; what was called is in CALLS."""
    global TACTICS
    TACTICS = tactics
    CALLS.clear()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(model), parser.get_error(0).desc()
    config = builder.create_builder_config()
    cache = config.create_timing_cache(blob)
    config.set_timing_cache(cache, False)
    return builder.build_serialized_network(network, config), bytes(cache.serialize())


plan, cache = build([1, 2])
assert plan is not None
assert CALLS[:4] == ["type", "shape", "formats", "formats"], CALLS
assert CALLS[4:6] == ["kernel 1", "kernel 2"], CALLS
assert len(CALLS) == 7, "each candidate once, then the one that won"
chosen = CALLS[6]

# The stock identity is empty, and that is no lack of one: times are kept.
_, again = build([1, 2], cache)
assert again == cache
assert CALLS[4:] == [chosen], "only the kernel that the engine holds is asked for"

build([7])
assert CALLS[4:] == ["kernel 7"], "one candidate is not timed"
assert build([1, 13])[0] is None, "what a plugin raises ends the build"

# An engine holds the kernel: it needs neither creator nor Python.
registry = trt.get_plugin_registry()
for creator in registry.all_creators:
    assert registry.deregister_creator(creator)
engine = trt.Runtime(logger).deserialize_cuda_engine(bytes(plan))
context = engine.create_execution_context()
for n in range(engine.num_io_tensors):
    name = engine.get_tensor_name(n)
    context.set_tensor_address(name, 4096)
    if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
        context.set_input_shape(name, engine.get_tensor_profile_shape(name, 0)[1])
CALLS.clear()
assert context.execute_async_v3(1)
assert CALLS == []
