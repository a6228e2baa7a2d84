"""Models in 16 bits: close to the original, half the size, islands with reasons, no idle casts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.real_models import PPOCR, light_model, ppocr_model
from tests.rewrite.graphs import Builder, save
from trtplug.errors import PrecisionError, UsageError
from trtplug.measure.accuracy import compare_outputs
from trtplug.measure.equality import ALIKE
from trtplug.measure.reference import Reference
from trtplug.model.load import load_model
from trtplug.model.precision import change_precision
from trtplug.model.save import save_model
from trtplug.model.validate import check_parts

SIZES = {"det": (1, 3, 320, 320), "rec": (1, 3, 48, 320), "cls": (1, 3, 48, 192)}


def resnet_50() -> onnx.ModelProto:
    """The light model with random weights of sane scale in place of its constant fills."""
    model, random = onnx.load(light_model("resnet50")), np.random.default_rng(0)
    graph = model.graph
    sizes = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    readers = {name: (n, slot) for n in graph.node for slot, name in enumerate(n.input)}

    def draw(name: str, shape: tuple[int, ...]) -> np.ndarray:
        node, slot = readers[name]
        if node.op_type == "BatchNormalization":
            positive = slot in (1, 4)
            return random.uniform(0.5, 1.5, shape) if positive else random.normal(0, 0.1, shape)
        return random.standard_normal(shape) * np.sqrt(2 / max(1, np.prod(shape[1:])))

    names = [n.output[0] for n in graph.node if n.op_type == "ConstantOfShape"]
    fills = {n.output[0]: tuple(sizes[n.input[0]]) for n in graph.node if n.output[0] in names}
    nodes = [n for n in graph.node if n.op_type != "ConstantOfShape"]
    stored = [
        t for t in graph.initializer if t.data_type == TensorProto.FLOAT and t.name in readers
    ]
    fills |= {t.name: tuple(t.dims) for t in stored}
    weights = [numpy_helper.from_array(draw(n, s).astype(np.float32), n) for n, s in fills.items()]
    weights += [t for t in graph.initializer if t.data_type == TensorProto.INT64]
    data = [v for v in graph.input if v.name not in sizes]
    new = helper.make_graph(nodes, "resnet", data, graph.output, weights)
    return helper.make_model(new, opset_imports=model.opset_import, ir_version=8)


def converted(path, tmp_path, precision="fp16", **options):
    change = change_precision(load_model(path), precision, **options)
    out = tmp_path / f"{precision}.onnx"
    check_parts(change.parts, out)
    save_model(change.parts, out)
    onnx.checker.check_model(str(out), full_check=True)
    return change, out


@pytest.mark.parametrize("name", [*PPOCR, "resnet50"])
def test_float16_is_close_and_half_as_large(tmp_path, name):
    path = ppocr_model(name) if name in PPOCR else save(resnet_50(), tmp_path)
    _, out = converted(path, tmp_path)
    assert out.stat().st_size < 0.54 * path.stat().st_size
    model = load_model(path)
    assert load_model(out).inputs == model.inputs
    assert load_model(out).outputs == model.outputs
    shape = SIZES.get(name, (1, 3, 224, 224))
    one, two = Reference(path), Reference(out)
    for seed in range(2):
        image = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
        feeds = {model.inputs[0].name: image}
        outputs = compare_outputs(one.run(feeds), two.run(feeds))
        assert all(o.alike(0.999) for o in outputs), outputs


def test_layer_norm_and_softmax_of_the_recogniser_stay_in_float32(tmp_path):
    change, _ = converted(ppocr_model("rec"), tmp_path)
    kinds = Counter(i.op_type for i in change.islands)
    assert kinds == {"ReduceMean": 10, "Pow": 5, "Add": 5, "Sqrt": 5, "Softmax": 3}
    assert all(i.reason for i in change.islands)


def simple(tmp_path, write, **options):
    b = Builder()
    y = write(b)
    path = save(b.model(y), tmp_path)
    change, out = converted(path, tmp_path, **options)
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 4, 9, 7)).astype(np.float32)}
    outputs = compare_outputs(Reference(path).run(feeds), Reference(out).run(feeds))
    return change, [n.op_type for n in change.parts.nodes], outputs


def test_one_cast_in_and_one_out(tmp_path):
    _, ops, outputs = simple(tmp_path, lambda b: b.add("Relu", b.conv("x", 4, 4)))
    assert ops == ["Cast", "Conv", "Relu", "Cast"]
    assert outputs[0].alike(0.999)


def test_inputs_and_outputs_may_follow(tmp_path):
    b = Builder()
    path = save(b.model(b.add("Relu", b.conv("x", 4, 4))), tmp_path)
    change, out = converted(path, tmp_path, io="match")
    assert [n.op_type for n in change.parts.nodes] == ["Conv", "Relu"]
    assert [s.dtype for s in (*load_model(out).inputs, *load_model(out).outputs)] == ["float16"] * 2


def test_a_node_kept_by_glob(tmp_path):
    change, ops, outputs = simple(
        tmp_path, lambda b: b.add("Relu", b.conv(b.conv("x", 4, 4), 4, 4)), keep_fp32=("n1",)
    )
    assert [(i.node, i.reason) for i in change.islands] == [("n1", "--keep-fp32 n1")]
    assert ops == ["Cast", "Conv", "Cast", "Conv", "Cast", "Relu", "Cast"]
    assert outputs[0].alike(0.999)


def test_a_glob_that_matches_nothing_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="'m1' matches no node"):
        simple(tmp_path, lambda b: b.add("Relu", b.conv("x", 4, 4)), keep_fp32=("m1",))


def test_between_two_islands_nothing_is_cast_down_and_up(tmp_path):
    def write(b):
        y = b.add("Softmax", b.conv("x", 4, 4))
        y = b.add("Transpose", b.add("Identity", y), perm=[0, 1, 3, 2])
        return b.add("Softmax", b.add("Transpose", y, perm=[0, 1, 3, 2]))

    _, ops, _ = simple(tmp_path, write)
    assert ops == [
        "Cast",
        "Conv",
        "Cast",
        "Softmax",
        "Identity",
        "Transpose",
        "Transpose",
        "Softmax",
    ]


def test_no_cast_feeds_a_cast_back(tmp_path):
    for name in PPOCR:
        change, _ = converted(ppocr_model(name), tmp_path)
        makers = {o: n for n in change.parts.nodes for o in n.output}
        for node in change.parts.nodes:
            source = makers.get(node.input[0]) if node.op_type == "Cast" else None
            assert source is None or source.op_type != "Cast", node.name


def test_weights_beyond_the_range_stay(tmp_path):
    def write(b):
        return b.conv(b.add("Mul", "x", b.weight(1e-3)), 4, 4)

    b = Builder()
    y = write(b)
    b.weights["w1"] *= 1e6
    path = save(b.model(y), tmp_path)
    change, _ = converted(path, tmp_path)
    assert [i.node for i in change.islands] == ["n1"]
    assert "beyond 65504" in change.islands[0].reason


def test_weights_that_a_fold_takes_beyond_the_range_stay(tmp_path):
    b = Builder()
    y = b.batch_norm(b.conv("x", 4, 4), 4, epsilon=1e-12)
    b.weights["w5"] = np.full(4, 1e-12, np.float32)
    path = save(b.model(b.add("Relu", y)), tmp_path)
    change, _ = converted(path, tmp_path)
    assert {i.node for i in change.islands} == {"n0", "n1"}
    assert "weights folded with 'n1' reach" in change.islands[0].reason


def test_quantised_chains_are_left_alone(tmp_path):
    def write(b):
        scale, zero = b.weight(0.02), b.weight(0, np.uint8)
        q = b.add("DequantizeLinear", b.add("QuantizeLinear", "x", scale, zero), scale, zero)
        return b.add("Sigmoid", b.add("Relu", b.conv(q, 4, 4)))

    change, ops, _ = simple(tmp_path, write)
    assert ops == [
        "QuantizeLinear", "DequantizeLinear", "Conv", "Cast", "Relu", "Sigmoid", "Cast",
    ]  # fmt: skip
    assert {i.reason for i in change.islands} == {"quantised chains are left alone"}


def test_sizes_computed_in_float_keep_their_digits(tmp_path):
    def write(b):
        shape = b.add("Cast", b.add("Shape", "x"), to=TensorProto.FLOAT)
        half = b.add("Cast", b.add("Mul", shape, b.weight([1, 1, 1, 1])), to=TensorProto.INT64)
        limited = b.add("Min", half, b.weight([9] * 4, np.int64))
        return b.add("Expand", b.conv("x", 4, 4, kernel=(9, 7), pads=[0] * 4), limited)

    change, _, outputs = simple(tmp_path, write)
    assert {i.op_type for i in change.islands} == {"Cast", "Mul"}
    assert outputs[0].alike(0.999)


def test_branches_read_what_they_read(tmp_path):
    b = Builder()
    y = b.add("Relu", b.conv("x", 4, 4))
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [None] * 4)
    then, other = (
        helper.make_graph([helper.make_node(op, [y], ["o"])], op, [], [out])
        for op in ("Neg", "Abs")
    )
    b.nodes.append(helper.make_node("If", ["c"], ["z"], then_branch=then, else_branch=other))
    model = b.model(b.add("Sigmoid", "z"))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    path = save(model, tmp_path)
    _, made = converted(path, tmp_path)
    feeds = {"x": np.ones((1, 4, 9, 7), np.float32), "c": np.asarray(True)}
    outputs = compare_outputs(Reference(path).run(feeds), Reference(made).run(feeds))
    assert outputs[0].alike(0.999)


def test_one_weight_for_both_types_is_stored_in_both(tmp_path):
    def write(b):
        w = b.normal(4, 4, 3, 3)
        one = b.add("Conv", "x", w, pads=[1] * 4)
        return b.add("Conv", one, w, pads=[1] * 4)

    change, _, outputs = simple(tmp_path, write, keep_fp32=("n1",))
    assert [t.name for t in change.parts.tensors] == ["w0", "w0_float16"]
    assert outputs[0].alike(0.999)


def test_a_model_that_is_there_already_is_an_error(tmp_path):
    b = Builder(dtype=np.float16)
    model = b.model(b.add("Relu", b.conv("x", 4, 4)), elem_type=TensorProto.FLOAT16)
    with pytest.raises(PrecisionError, match="no node computes in float32"):
        change_precision(load_model(save(model, tmp_path)), "fp16")


@pytest.mark.parametrize("name", PPOCR)
def test_bfloat16_raises_the_opset_and_stays_close(tmp_path, name):
    path = ppocr_model(name)
    _, out = converted(path, tmp_path, "bf16")
    model = load_model(path)
    assert load_model(out).opset == 22
    assert out.stat().st_size < 0.6 * path.stat().st_size
    image = np.random.default_rng(0).uniform(-1, 1, SIZES[name]).astype(np.float32)
    feeds = {model.inputs[0].name: image}
    # Its reference is a float32 copy of the same weights: ONNX Runtime has no bfloat16 convolution.
    outputs = compare_outputs(Reference(path).run(feeds), Reference(out).run(feeds))
    assert all(o.alike(ALIKE["bf16"]) for o in outputs), outputs
