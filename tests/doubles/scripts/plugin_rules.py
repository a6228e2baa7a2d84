"""Run in a process that has the double: a plugin that writes down how it is called."""

import sys

import numpy as np
import tensorrt as trt

CALLS = []
PHASES = trt.TensorRTPhase


class Plugin(trt.IPluginV3, trt.IPluginV3OneCore, trt.IPluginV3OneBuild, trt.IPluginV3OneRuntime):
    def __init__(self, identity, scale):
        super().__init__()
        self.plugin_name, self.plugin_version, self.plugin_namespace = "CBR", "1", "trtplug"
        self.num_outputs, self.timing_cache_id = 1, identity
        self.identity, self.scale, self.tactic = identity, scale, None

    def get_capability_interface(self, type):
        return self

    def clone(self):
        CALLS.append("clone")
        other = Plugin(self.identity, self.scale)
        other.tactic = self.tactic
        return other

    def get_output_data_types(self, input_types):
        CALLS.append("types")
        return [input_types[0]]

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        CALLS.append("shapes")
        twice = expr_builder.operation(
            trt.DimensionOperation.PROD, inputs[0][1], expr_builder.constant(2)
        )
        made = trt.DimsExprs(inputs[0])
        made[1] = twice
        return [made]

    def supports_format_combination(self, pos, in_out, num_inputs):
        assert len(in_out) == pos + 1, "what stands behind is not known yet"
        return in_out[pos].desc.format == trt.TensorFormat.LINEAR

    def configure_plugin(self, inp, out):
        CALLS.append("configure")

    def get_valid_tactics(self):
        CALLS.append("tactics")
        return TACTICS

    def set_tactic(self, tactic):
        CALLS.append(f"set {tactic}")
        self.tactic = tactic

    def on_shape_change(self, inp, out):
        CALLS.append("shape")

    def attach_to_context(self, resource_context):
        CALLS.append("attach")
        return self.clone()

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        CALLS.append(f"enqueue {self.tactic}")

    def get_fields_to_serialize(self):
        CALLS.append("fields")
        data = np.array([self.scale], np.float32)
        field = trt.PluginField("scale", data, trt.PluginFieldType.FLOAT32)
        return trt.PluginFieldCollection([field])


class Creator(trt.IPluginCreatorV3One):
    def __init__(self):
        super().__init__()
        self.name, self.plugin_version, self.plugin_namespace = "CBR", "1", "trtplug"
        self.field_names = trt.PluginFieldCollection([trt.PluginField("scale", np.array([]))])

    def create_plugin(self, name, field_collection, phase):
        CALLS.append(f"create {PHASES(phase).name}")
        fields = {f.name: f.data for f in field_collection}
        assert set(fields) == {"scale"}, "names that choose the creator are no fields"
        assert fields["scale"].tolist() == [2.0]
        return Plugin(IDENTITY, float(fields["scale"][0]))


logger = trt.Logger(trt.Logger.VERBOSE)
model = open(sys.argv[1], "rb").read()  # noqa: PTH123, SIM115
creator = Creator()


def build(tactics, identity, blob=b""):
    """The engine, and the cache; what was called is in CALLS."""
    global TACTICS, IDENTITY
    TACTICS, IDENTITY = tactics, identity
    CALLS.clear()
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model):
        return None, parser.get_error(0).desc()
    config = builder.create_builder_config()
    cache = config.create_timing_cache(blob)
    config.set_timing_cache(cache, False)
    return builder.build_serialized_network(network, config), bytes(cache.serialize())


def load(plan):
    return trt.Runtime(logger).deserialize_cuda_engine(bytes(plan))


plan, words = build([1, 2], "id")
assert plan is None
assert "Plugin not found" in words

registry = trt.Builder(logger).get_plugin_registry()
assert registry.register_creator(creator, "trtplug")
assert not registry.register_creator(Creator(), "trtplug"), "the name is taken"

plan, cache = build([1, 2], "id")
assert plan is not None
assert CALLS[:5] == ["create BUILD", "types", "shapes", "configure", "tactics"], CALLS
timed = CALLS[5:]
for tactic in (1, 2):
    begin = timed.index(f"set {tactic}")
    assert timed[begin - 2 : begin] == ["clone", "configure"], timed
    assert timed[begin + 1 : begin + 3] == ["shape", f"enqueue {tactic}"], timed
assert timed[-1] == "fields"
chosen = timed[-2]
assert chosen in ("set 1", "set 2")

# With an identity the time is in the cache; another identity, or none, is timed anew.
_, again = build([1, 2], "id", cache)
assert "enqueue 1" not in CALLS
assert again == cache
build([1, 2], "other", cache)
assert "enqueue 1" in CALLS
_, without = build([1, 2], None, cache)
assert "enqueue 1" in CALLS
assert without == cache, "no identity, no caching"

build([7], "id")
assert not any(c.startswith("enqueue") for c in CALLS), "one candidate is not timed"
assert build([1, 1], "id")[0] is None
assert build([-1], "id")[0] is None

CALLS.clear()
engine = load(plan)
assert CALLS == ["create RUNTIME"], CALLS
context = engine.create_execution_context()
for n in range(engine.num_io_tensors):
    name = engine.get_tensor_name(n)
    context.set_tensor_address(name, 4096)
    if engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT:
        context.set_input_shape(name, engine.get_tensor_profile_shape(name, 0)[1])
assert context.execute_async_v3(1)
assert CALLS[1:4] == ["attach", "clone", chosen], CALLS
assert CALLS[4:] == ["shape", f"enqueue {chosen.split()[1]}"], CALLS

assert registry.deregister_creator(creator)
assert load(plan) is None, "an engine needs its creator"
