"""The rule on graphs built in code: each report of research on graph details is one of these."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.rewrite.graphs import Builder, prove, rewrite, save
from trtplug.errors import NodeInvalidError
from trtplug.measure.equality import EXACT, compare_models
from trtplug.measure.reference import Reference
from trtplug.model.load import load_model
from trtplug.rewrite.find import find_sites
from trtplug.rewrite.site import NearMissReason as Reason


def sites_of(model: onnx.ModelProto, tmp_path, **options):
    return find_sites(load_model(save(model, tmp_path)), **options)


def only_site(model, tmp_path, **options):
    sites, misses = sites_of(model, tmp_path, **options)
    assert (len(sites), misses) == (1, ())
    return sites[0]


def only_miss(model, tmp_path, **options):
    sites, misses = sites_of(model, tmp_path, **options)
    assert (sites, len(misses)) == ((), 1)
    return misses[0]


def test_one_weight_for_three_convolutions_is_folded_for_each_apart(tmp_path):
    b = Builder()
    w = b.normal(4, 4, 3, 3)
    convs = [b.add("Conv", "x", w, pads=[1] * 4) for _ in range(3)]
    ends = [b.batch_norm(convs[0], 4), b.batch_norm(convs[1], 4), convs[2]]
    result = prove(b.model(ends), tmp_path)
    weights = {n.input[1] for n in result.parts.nodes if n.op_type == "CBR"}
    assert len(weights) == 3
    assert w in weights


def test_a_convolution_read_twice_stays_and_says_so(tmp_path):
    b = Builder()
    c = b.conv("x", 4, 4)
    model = b.model([b.batch_norm(c, 4), b.add("Sigmoid", c)])
    site = only_site(model, tmp_path)
    assert site.nodes == (site.conv,)
    assert site.stop.reason is Reason.MULTI_CONSUMER
    prove(model, tmp_path)


@pytest.mark.parametrize("reader", ["Relu", "Identity", "BatchNormalization", "Add"])
def test_a_convolution_that_is_a_graph_output_keeps_its_value(tmp_path, reader):
    b = Builder()
    c = b.conv("x", 4, 4)
    more = ["x"] if reader == "Add" else []
    y = b.batch_norm(c, 4) if reader == "BatchNormalization" else b.add(reader, c, *more)
    model = b.model([c, y])
    site = only_site(model, tmp_path)
    assert (site.activation, site.output) == ("none", c)
    assert site.stop.reason is Reason.GRAPH_OUTPUT
    prove(model, tmp_path)


def test_batch_norm_after_the_activation_is_left(tmp_path):
    b = Builder()
    bn = b.batch_norm(b.add("Relu", b.conv("x", 4, 4)), 4)
    result = prove(b.model(bn), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["CBR", "BatchNormalization"]


def test_batch_norm_in_training_mode_is_not_folded(tmp_path):
    b = Builder()
    bn = b.batch_norm(b.conv("x", 4, 4), 4, outputs=3, training_mode=1)
    site = only_site(b.model(b.add("Relu", bn)), tmp_path)
    assert site.activation == "none"
    assert site.stop.reason is Reason.BATCH_STATISTICS
    assert site.stop.node == "n1"
    assert "evaluation mode" in site.stop.reason.sentence


def test_unused_extra_outputs_of_batch_norm_are_dropped(tmp_path):
    b = Builder(opset=9)
    bn = b.batch_norm(b.conv("x", 4, 4), 4, outputs=5)
    model = b.model(b.add("Relu", bn))
    result, out = rewrite(save(model, tmp_path))
    assert result.sites[0].activation == "relu"
    assert "without batch statistics" in result.notices[0]
    # ONNX Runtime takes five outputs for training mode, so the reference is the model without them.
    del model.graph.node[1].output[1:]
    specs = load_model(out).inputs
    trials = compare_models(save(model, tmp_path, "one.onnx"), out, specs, [{"x": (2, 4, 9, 7)}])
    assert all(o.within(EXACT) for t in trials for o in t.outputs)


def test_a_used_extra_output_of_batch_norm_forbids_the_fold(tmp_path):
    b = Builder(opset=9)
    bn = b.batch_norm(b.conv("x", 4, 4), 4, outputs=5)
    model = b.model([bn])
    mean = helper.make_tensor_value_info(bn + "_1", TensorProto.FLOAT, [4])
    model.graph.output.append(mean)
    assert only_site(model, tmp_path).stop.reason is Reason.BATCH_STATISTICS


def test_weights_in_constant_nodes_give_the_same_as_initializers(tmp_path):
    b = Builder()
    y = b.add("Relu", b.batch_norm(b.conv("x", 4, 4), 4))
    plain = b.model(y)
    as_nodes = onnx.ModelProto()
    as_nodes.CopyFrom(plain)
    del as_nodes.graph.initializer[:], as_nodes.graph.node[:]
    for i, (name, w) in enumerate(b.weights.items()):
        kind = (
            {"value_floats": w.tolist()} if w.ndim == 1 else {"value": numpy_helper.from_array(w)}
        )
        as_nodes.graph.node.append(helper.make_node("Constant", [], [name], name=f"c{i}", **kind))
    as_nodes.graph.node.extend(b.nodes)
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one, two = prove(plain, tmp_path / "a"), prove(as_nodes, tmp_path / "b")
    assert one.sites == two.sites
    folded = [[t.make() for t in r.parts.tensors if hasattr(t, "make")] for r in (one, two)]
    assert all(np.array_equal(p, q) for p, q in zip(*folded, strict=True))
    assert [n.op_type for n in two.parts.nodes] == ["CBR"]


def test_constants_are_found_through_identity(tmp_path):
    b = Builder()
    w, bias = b.add("Identity", b.normal(4, 4, 3, 3)), b.add("Identity", b.normal(4))
    one = b.add("Relu", b.add("Conv", "x", w, bias, pads=[1] * 4))
    two = b.add("Sigmoid", b.add("Conv", one, w, bias, pads=[1] * 4))
    assert len(prove(b.model(two), tmp_path).sites) == 2


def with_weights_as_inputs(b: Builder, y: str, ir_version: int) -> onnx.ModelProto:
    listed = tuple(
        helper.make_tensor_value_info(n, TensorProto.FLOAT, w.shape) for n, w in b.weights.items()
    )
    return b.model(y, ir_version=ir_version, extra_inputs=listed)


def test_weights_listed_as_inputs_are_constants_in_ir_3_and_are_said_to_be(tmp_path):
    b = Builder(opset=9)
    model = with_weights_as_inputs(b, b.add("Relu", b.batch_norm(b.conv("x", 4, 4), 4)), 3)
    result = prove(model, tmp_path)
    assert result.sites[0].activation == "relu"
    assert "6 initializers" in result.notices[0]
    assert [v.name for v in result.parts.graph.input] == ["x"]
    miss = only_miss(model, tmp_path, fold_overridable=False)
    assert miss.reason is Reason.OVERRIDABLE


def test_weights_listed_as_inputs_since_ir_4_are_left_unless_told(tmp_path):
    b = Builder()
    model = with_weights_as_inputs(b, b.add("Relu", b.conv("x", 4, 4)), 8)
    assert only_miss(model, tmp_path).reason is Reason.OVERRIDABLE
    untouched, _ = rewrite(save(model, tmp_path))
    assert untouched.parts.to_proto() == model
    assert prove(model, tmp_path, fold_overridable=True).sites[0].activation == "relu"


def test_an_overridable_parameter_of_the_batch_norm_stops_the_site(tmp_path):
    b = Builder()
    y = b.batch_norm(b.conv("x", 4, 4), 4)
    scale = next(n for n in b.nodes if n.op_type == "BatchNormalization").input[1]
    listed = (helper.make_tensor_value_info(scale, TensorProto.FLOAT, [4]),)
    site = only_site(b.model(y, extra_inputs=listed), tmp_path)
    assert site.stop.reason is Reason.OVERRIDABLE


def test_a_weight_fed_at_run_time_is_left(tmp_path):
    b = Builder()
    y = b.add("Relu", b.add("Conv", "x", "w"))
    model = b.model(y, inputs={"x": (1, 4, 9, 7), "w": (5, 4, 3, 3)})
    assert only_miss(model, tmp_path).reason is Reason.DYNAMIC_WEIGHT
    _, out = rewrite(save(model, tmp_path))
    assert onnx.load(out) == model


def test_a_bias_fed_at_run_time_is_left(tmp_path):
    b = Builder()
    y = b.add("Conv", "x", b.normal(5, 4, 3, 3), "b")
    model = b.model(y, inputs={"x": (1, 4, 9, 7), "b": (5,)})
    assert only_miss(model, tmp_path).reason is Reason.DYNAMIC_BIAS


def test_no_bias_becomes_zeros_or_the_shift_of_the_batch_norm(tmp_path):
    b = Builder()
    first = b.add("Relu", b.conv("x", 4, 4, bias=False))
    y = b.add("Relu", b.batch_norm(b.conv(first, 4, 4, bias=False), 4))
    result = prove(b.model(y), tmp_path)
    made = {t.name: t.make() for t in result.parts.tensors if hasattr(t, "make")}
    assert np.array_equal(made["n0.bias"], np.zeros(4))
    scale, shift, mean, variance = (b.weights[n] for n in b.nodes[3].input[1:])
    assert np.allclose(made["n2.bias"], shift - mean * scale / np.sqrt(variance + 1e-5))


@pytest.mark.parametrize("bias", [np.zeros((1, 4), np.float32), np.zeros(3, np.float32)])
def test_a_bias_of_another_shape_is_an_error(tmp_path, bias):
    b = Builder()
    y = b.add("Conv", "x", b.normal(4, 4, 3, 3), b.weight(bias))
    with pytest.raises(NodeInvalidError, match=r"n0.*bias is .*needs \[4\]"):
        sites_of(b.model(y), tmp_path)


@pytest.mark.parametrize("constant_first", [True, False])
@pytest.mark.parametrize("shape", [(1, 4, 1, 1), (4, 1, 1), (1,), (), (1, 1)])
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub", "Div"])
def test_arithmetic_with_a_constant_folds(tmp_path, op, shape, constant_first):
    b = Builder()
    c, k = b.conv("x", 4, 4), b.weight(b.random.uniform(0.5, 2, shape))
    y = b.add("Relu", b.add(op, k, c) if constant_first else b.add(op, c, k))
    result = prove(b.model(y), tmp_path)
    if (op, constant_first) == ("Div", True):
        assert result.sites[0].activation == "none"
    else:
        assert [n.op_type for n in result.parts.nodes] == ["CBR"]


def test_batch_norm_written_as_mul_and_add_through_reshape_folds(tmp_path):
    b = Builder()
    shape = b.weight([-1, 4, 1, 1], np.int64)
    scale = b.add("Reshape", b.normal(4), shape)
    shift = b.add("Unsqueeze", b.normal(4), b.weight([1, 2], np.int64))
    y = b.add("Relu", b.add("Add", shift, b.add("Mul", scale, b.conv("x", 4, 4))))
    result = prove(b.model(y), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]
    assert len(result.sites[0].folded) == 2


@pytest.mark.parametrize("shape", [(1, 1, 9, 7), (7,), (1, 4, 9, 1)])
def test_a_constant_that_varies_over_the_picture_is_no_bias(tmp_path, shape):
    b = Builder()
    model = b.model(b.add("Add", b.conv("x", 4, 4), b.normal(*shape)))
    assert only_site(model, tmp_path).stop.reason is Reason.PER_CHANNEL
    prove(model, tmp_path)


def test_a_constant_that_widens_the_tensor_is_no_scale(tmp_path):
    b = Builder()
    model = b.model(b.add("Mul", b.conv("x", 1, 4), b.normal(1, 3, 1, 1)))
    assert only_site(model, tmp_path).stop.reason is Reason.PER_CHANNEL
    prove(model, tmp_path)


def test_depthwise_with_multiplier_folds_per_output_channel(tmp_path):
    b = Builder()
    y = b.add("Relu", b.batch_norm(b.conv("x", 8, 1, group=4), 8))
    result = prove(b.model(y), tmp_path)
    assert (result.sites[0].group, result.sites[0].activation) == (4, "relu")


def test_dilation_stride_and_unequal_sides(tmp_path):
    b = Builder()
    given = {"dilations": [2, 3], "strides": [2, 1], "pads": [2, 1, 0, 3]}
    y = b.add("Relu", b.conv("x", 5, 4, kernel=(3, 2), **given))
    site = prove(b.model(y, {"x": ("N", 4, 11, 9)}), tmp_path, ((1, 4, 11, 9),)).sites[0]
    assert (site.dilations, site.strides, site.pads) == ((2, 3), (2, 1), (2, 1, 0, 3))


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_auto_pad_with_a_stride_is_explicit_where_sizes_are_known(tmp_path, mode):
    b = Builder()
    y = b.add("Conv", "x", b.normal(5, 4, 4, 3), auto_pad=mode, strides=[2, 2])
    model = b.model(b.add("Relu", y), {"x": (1, 4, 7, 6)})
    site = prove(model, tmp_path, ((1, 4, 7, 6),)).sites[0]
    # 7 rows: 4 outputs need 10 with the kernel of 4, so 3 more; 6 columns: 3 need 7, so 1 more.
    assert site.pads == ((1, 0, 2, 1) if mode == "SAME_UPPER" else (2, 1, 1, 0))


def test_auto_pad_with_a_stride_is_left_where_sizes_are_open(tmp_path):
    b = Builder()
    y = b.add("Conv", "x", b.normal(5, 4, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2])
    model = b.model(y, {"x": (1, 4, "H", "W")})
    assert only_miss(model, tmp_path).reason is Reason.AUTO_PAD


@pytest.mark.parametrize(("mode", "pads"), [("SAME_LOWER", (2, 1, 1, 1)), ("VALID", (0, 0, 0, 0))])
def test_auto_pad_that_needs_no_sizes_is_explicit_for_any(tmp_path, mode, pads):
    b = Builder()
    y = b.add("Conv", "x", b.normal(5, 4, 4, 3), auto_pad=mode)
    model = b.model(b.add("Relu", y), {"x": (1, 4, "H", "W")})
    assert prove(model, tmp_path, ((1, 4, 7, 6), (1, 4, 8, 9))).sites[0].pads == pads


def test_attributes_left_out_take_the_standard_defaults(tmp_path):
    b = Builder()
    site = only_site(b.model(b.add("Conv", "x", b.normal(5, 4, 2, 3))), tmp_path)
    assert (site.kernel_shape, site.strides, site.dilations) == ((2, 3), (1, 1), (1, 1))
    assert (site.pads, site.group) == ((0, 0, 0, 0), 1)


def test_a_kernel_shape_that_contradicts_the_weight_is_an_error(tmp_path):
    b = Builder()
    y = b.add("Conv", "x", b.normal(5, 4, 2, 3), kernel_shape=[3, 3])
    with pytest.raises(NodeInvalidError, match=r"kernel_shape \[3, 3\] .* \[5, 4, 2, 3\]"):
        sites_of(b.model(y), tmp_path)


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks_are_near_misses(tmp_path, rank):
    b = Builder()
    kernel = (3,) * rank
    y = b.add("Relu", b.add("Conv", "x", b.normal(5, 4, *kernel)))
    model = b.model(y, {"x": (1, 4, *(8,) * rank)})
    del model.graph.output[0].type.tensor_type.shape.dim[2 + rank :]
    if rank == 3:
        model.graph.output[0].type.tensor_type.shape.dim.add()
    assert only_miss(model, tmp_path).reason is Reason.RANK
    prove(model, tmp_path, ((1, 4, *(8,) * rank),))


def test_transposed_convolutions_are_not_convolutions(tmp_path):
    b = Builder()
    w = b.normal(4, 5, 2, 2)
    y = b.add("Relu", b.batch_norm(b.add("ConvTranspose", "x", w), 5))
    assert sites_of(b.model(y), tmp_path) == ((), ())
    prove(b.model(y), tmp_path)


def test_double_precision_is_a_near_miss(tmp_path):
    b = Builder(dtype=np.float64)
    model = b.model(b.conv("x", 5, 4), elem_type=TensorProto.DOUBLE)
    assert only_miss(model, tmp_path).reason is Reason.DTYPE


def test_opsets_below_7_are_left(tmp_path):
    b = Builder(opset=6)
    assert only_miss(b.model(b.conv("x", 5, 4)), tmp_path).reason is Reason.OPSET


def quantized(b: Builder, where: str) -> str:
    scale, zero = b.weight(0.02), b.weight(0, np.uint8)
    if where == "input":
        q = b.add("QuantizeLinear", "x", scale, zero)
        return b.add("Relu", b.conv(b.add("DequantizeLinear", q, scale, zero), 4, 4))
    if where == "weight":
        w = b.weight(b.random.integers(0, 255, (4, 4, 3, 3)), np.uint8)
        return b.add("Relu", b.add("Conv", "x", b.add("DequantizeLinear", w, scale, zero)))
    y = b.add("Relu", b.conv("x", 4, 4))
    q = b.add("QuantizeLinear", y, scale, zero)
    return b.add("DequantizeLinear", q, scale, zero)


@pytest.mark.parametrize("where", ["input", "weight", "output"])
def test_quantised_chains_are_left(tmp_path, where):
    b = Builder()
    model = b.model(quantized(b, where))
    assert only_miss(model, tmp_path).reason is Reason.QUANTIZED
    result, _ = rewrite(save(model, tmp_path))
    assert result.parts.to_proto() == model


@pytest.mark.parametrize("half", [False, True])
def test_a_cast_between_convolution_and_batch_norm_is_not_crossed(tmp_path, half):
    b = Builder(dtype=np.float16 if half else np.float32)
    x = b.add("Cast", "x", to=TensorProto.FLOAT16) if half else "x"
    c = b.conv(x, 4, 4)
    to = TensorProto.FLOAT if half else TensorProto.FLOAT16
    y = b.add("Cast", c, to=to)
    b.dtype = np.float32
    y = b.batch_norm(y, 4) if half else b.add("Cast", y, to=TensorProto.FLOAT)
    model = b.model(b.add("Relu", y))
    assert only_site(model, tmp_path).stop.reason is Reason.TYPE_CHANGE
    prove(model, tmp_path)


def half_precision(variance: float, epsilon: float) -> onnx.ModelProto:
    b = Builder(dtype=np.float16)
    c = b.conv(b.add("Cast", "x", to=TensorProto.FLOAT16), 4, 4)
    wide = [b.weight(v, np.float32) for v in ([1.0] * 4, [0.1] * 4, [0.2] * 4, [variance] * 4)]
    y = b.add("BatchNormalization", c, *wide, epsilon=epsilon)
    return b.model(b.add("Cast", b.add("Relu", y), to=TensorProto.FLOAT))


def test_float32_parameters_fold_into_a_float16_weight_and_round_once(tmp_path):
    model = half_precision(0.7, 1e-5)
    path = save(model, tmp_path)
    result, _ = rewrite(path)
    assert result.sites[0].activation == "relu"
    folded = next(t for t in result.parts.tensors if t.name.endswith(".weight")).make()
    weight = numpy_helper.to_array(model.graph.initializer[0])
    factor = 1 / np.sqrt(np.float64(np.float32(0.7)) + np.float64(np.float32(1e-5)))
    assert folded.dtype == np.float16
    assert np.array_equal(folded, (weight.astype(np.float64) * factor).astype(np.float16))


def test_folded_weights_beyond_float16_are_not_folded(tmp_path):
    site = only_site(half_precision(1e-12, 1e-12), tmp_path)
    assert site.stop.reason is Reason.FP16_RANGE


def test_zero_variance_gives_finite_weights(tmp_path):
    b = Builder()
    y = b.batch_norm(b.conv("x", 4, 4), 4)
    b.weights["w5"][:] = 0
    assert prove(b.model(y), tmp_path).sites[0].folded


def test_a_fold_that_is_not_finite_is_not_made(tmp_path):
    b = Builder()
    model = b.model(
        b.add("Div", b.conv("x", 4, 4), b.weight([[[[1.0]], [[0.0]], [[2.0]], [[3.0]]]]))
    )
    assert only_site(model, tmp_path).stop.reason is Reason.NOT_FINITE


def test_identity_and_dropout_are_looked_through(tmp_path):
    b = Builder()
    y = b.add("Dropout", b.add("Identity", b.conv("x", 4, 4)))
    y = b.add("Relu", b.add("Identity", b.batch_norm(y, 4)))
    result = prove(b.model(y), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


@pytest.mark.parametrize("how", ["training", "mask"])
def test_a_dropout_that_does_something_stays(tmp_path, how):
    b = Builder()
    c = b.conv("x", 4, 4)
    if how == "training":
        ratio, mode = b.weight(0.5), b.weight(True, np.bool_)
        model = b.model(b.add("Relu", b.add("Dropout", c, ratio, mode)))
    else:
        y = b.add("Dropout", c, outputs=2)
        model = b.model(b.add("Relu", y))
        mask = helper.make_tensor_value_info(y + "_1", TensorProto.BOOL, [None] * 4)
        model.graph.output.append(mask)
    assert only_site(model, tmp_path).stop.reason is Reason.DROPOUT


def test_zero_padding_before_the_convolution_goes_into_its_pads(tmp_path):
    b = Builder()
    p = b.add("Pad", "x", b.weight([0, 0, 1, 2, 0, 0, 0, 3], np.int64))
    y = b.add("Relu", b.conv(p, 5, 4, pads=[1, 0, 1, 0]))
    result = prove(b.model(y), tmp_path)
    assert result.sites[0].pads == (2, 2, 1, 3)
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


@pytest.mark.parametrize("case", ["reflect", "value", "channels", "negative"])
def test_other_padding_stays(tmp_path, case):
    b = Builder()
    pads = {"channels": [0, 1, 0, 0, 0, 1, 0, 0], "negative": [0, 0, -1, 0, 0, 0, 0, 0]}
    given = {"mode": "reflect"} if case == "reflect" else {}
    inputs = ["x", b.weight(pads.get(case, [0, 0, 1, 1, 0, 0, 1, 1]), np.int64)]
    inputs += [b.weight(0.5)] if case == "value" else []
    y = b.conv(b.add("Pad", *inputs, **given), 5, 6 if case == "channels" else 4)
    result = prove(b.model(y), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["Pad", "CBR"]


def test_scale_and_shift_before_the_convolution_fold(tmp_path):
    b = Builder()
    y = b.add("Add", b.add("Mul", b.normal(1, 4, 1, 1), "x"), b.normal(4, 1, 1))
    y = b.add("Relu", b.conv(y, 6, 2, pads=[0] * 4, group=2))
    result = prove(b.model(y), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


def test_a_shift_before_a_padded_convolution_stays(tmp_path):
    b = Builder()
    y = b.conv(b.add("Mul", b.add("Add", "x", b.normal(1, 4, 1, 1)), b.weight(2.0)), 6, 4)
    result = prove(b.model(y), tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["Add", "CBR"]


def test_what_others_read_before_the_convolution_stays(tmp_path):
    b = Builder()
    m = b.add("Mul", "x", b.weight(2.0))
    result = prove(b.model([b.conv(m, 4, 4), b.add("Relu", m)]), tmp_path)
    assert sorted(n.op_type for n in result.parts.nodes) == ["CBR", "Mul", "Relu"]


def test_a_residual_before_the_activation(tmp_path):
    b = Builder()
    c = b.batch_norm(b.conv("x", 4, 4), 4)
    result = prove(b.model(b.add("Relu", b.add("Add", "x", c))), tmp_path)
    assert (result.sites[0].residual, result.sites[0].activation) == ("before_activation", "relu")
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


def test_a_residual_after_the_activation(tmp_path):
    b = Builder()
    c = b.conv("x", 4, 4)
    y = b.add("Mul", c, b.add("Sigmoid", c))
    result = prove(b.model(b.add("Sum", y, "x"), {"x": ("N", 4, "H", "W")}), tmp_path)
    assert (result.sites[0].residual, result.sites[0].activation) == ("after_activation", "silu")
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


def test_of_two_convolutions_that_meet_the_later_takes_the_add(tmp_path):
    b = Builder()
    one, two = b.conv("x", 4, 4), b.conv("x", 4, 4)
    result = prove(b.model(b.add("Relu", b.add("Add", two, one))), tmp_path)
    first, second = result.sites
    assert (first.activation, first.stop.reason) == ("none", Reason.RESIDUAL_TAKEN)
    assert (second.conv, second.activation, second.residual) == ("n1", "relu", "before_activation")


def test_relus_on_both_branches_stay(tmp_path):
    b = Builder()
    one, two = (b.add("Relu", b.conv("x", 4, 4)) for _ in range(2))
    result = prove(b.model(b.add("Add", one, two)), tmp_path)
    assert [s.activation for s in result.sites] == ["relu", "relu"]
    assert [s.residual for s in result.sites] == ["none", "after_activation"]


def test_a_residual_of_another_shape_is_not_taken(tmp_path):
    b = Builder()
    r = b.add("GlobalAveragePool", "x")
    model = b.model(b.add("Add", b.conv("x", 4, 4), r))
    assert only_site(model, tmp_path).stop.reason is Reason.RESIDUAL_SHAPE
    prove(model, tmp_path)


def test_open_sizes_that_only_look_alike_are_not_one(tmp_path):
    b = Builder()
    y = b.add("Add", b.conv("x", 4, 4), "r")
    model = b.model(y, {"x": (1, 4, "?", "?"), "r": (1, 4, "?", "?")})
    assert only_site(model, tmp_path).stop.reason is Reason.RESIDUAL_SHAPE


def test_strided_branches_of_open_size_are_known_to_fit(tmp_path):
    b = Builder()
    one = b.conv("x", 6, 4, kernel=(3, 3), strides=[2, 2])
    two = b.conv("x", 6, 4, kernel=(1, 1), strides=[2, 2])
    model = b.model(b.add("Relu", b.add("Add", one, two)), {"x": ("N", 4, "H", "W")})
    result = prove(model, tmp_path, ((1, 4, 9, 7), (2, 4, 8, 6)))
    assert result.sites[1].residual == "before_activation"


def test_a_tensor_added_to_itself_is_no_residual(tmp_path):
    b = Builder()
    c = b.conv("x", 4, 4)
    model = b.model(b.add("Add", c, c))
    assert only_site(model, tmp_path).stop.reason is Reason.MULTI_CONSUMER
    prove(model, tmp_path)


def test_a_scale_fed_at_run_time_stops_the_site(tmp_path):
    b = Builder()
    c = b.conv("x", 4, 4)
    parameters = [b.normal(4), b.normal(4), "m", b.weight(np.ones(4))]
    y = b.add("BatchNormalization", c, *parameters)
    model = b.model(y, {"x": (1, 4, 9, 7), "m": (4,)})
    assert only_site(model, tmp_path).stop.reason is Reason.DYNAMIC_PARAMETER


def test_convolutions_of_local_functions_are_near_misses(tmp_path):
    body = [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("Relu", ["c"], ["y"])]
    function = helper.make_function(
        "local", "Block", ["x", "w"], ["y"], body, [helper.make_opsetid("", 17)]
    )
    b = Builder()
    y = b.add("Block", "x", b.normal(4, 4, 1, 1), domain="local")
    y = b.add("Block", y, b.normal(4, 4, 1, 1), domain="local")
    model = b.model(b.add("Relu", b.conv(y, 4, 4)))
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    result = prove(model, tmp_path)
    assert [(m.conv, m.reason) for m in result.near_misses] == [("Block/c", Reason.IN_FUNCTION)]
    assert len(result.sites) == 1


def branches(b: Builder, weight: str) -> onnx.NodeProto:
    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, [None] * 4)
        return helper.make_graph(nodes, name, [], [out])

    bn = [b.weight(np.full(4, v)) for v in (1.5, 0.2, 0.1, 0.9)]
    then = [
        helper.make_node("Conv", ["x", weight], ["c"], name="inner", pads=[1] * 4),
        helper.make_node("BatchNormalization", ["c", *bn], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
    ]
    other = [helper.make_node("Conv", ["x", weight], ["d"], pads=[1] * 4)]
    return helper.make_node(
        "If", ["cond"], ["y"], then_branch=branch("t", then), else_branch=branch("e", other)
    )


def test_sites_in_branches_are_rewritten_in_scope(tmp_path):
    b = Builder()
    b.nodes.append(branches(b, b.normal(4, 4, 3, 3)))
    y = b.add("Relu", b.conv("y", 4, 4))
    model = b.model(y, {"x": (1, 4, 9, 7)})
    model.graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    result = prove(model, tmp_path, ((1, 4, 9, 7),))
    found = {s.conv: s.activation for s in result.sites}
    assert found == {"n1": "relu", "inner": "relu", "d": "none"}
    graphs = [a.g for a in result.parts.nodes[0].attribute]
    assert sorted(n.op_type for g in graphs for n in g.node) == ["CBR", "CBR"]


def test_a_tensor_that_a_branch_reads_stays(tmp_path):
    b = Builder()
    c = b.conv("x", 4, 4)
    out = helper.make_tensor_value_info("o", TensorProto.FLOAT, [None] * 4)
    then, other = (
        helper.make_graph([helper.make_node(op, [c], ["o"])], op, [], [out])
        for op in ("Relu", "Neg")
    )
    b.nodes.append(helper.make_node("If", ["cond"], ["y"], then_branch=then, else_branch=other))
    model = b.model("y", {"x": (1, 4, 9, 7)})
    model.graph.input.append(helper.make_tensor_value_info("cond", TensorProto.BOOL, []))
    assert prove(model, tmp_path, ((1, 4, 9, 7),)).sites[0].stop.reason is Reason.MULTI_CONSUMER


def test_nodes_out_of_order_are_sorted(tmp_path):
    b = Builder()
    y = b.add("Relu", b.batch_norm(b.conv("x", 4, 4), 4))
    y = b.add("Sigmoid", b.add("MaxPool", y, kernel_shape=[2, 2]))
    model = b.model(y)
    shuffled = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(shuffled)
    result = prove(model, tmp_path)
    assert [n.op_type for n in result.parts.nodes] == ["CBR", "MaxPool", "Sigmoid"]
    assert "sorted" in result.notices[0]


def test_unnamed_and_doubly_named_nodes_are_known_by_their_outputs(tmp_path):
    b = Builder()
    y = b.add("Relu", b.conv(b.add("Relu", b.conv("x", 4, 4)), 4, 4))
    for node in b.nodes:
        node.name = "" if node.op_type == "Relu" else "same"
    # ONNX Runtime refuses doubled names; the rewritten model has none and runs.
    result, out = rewrite(save(b.model(y), tmp_path))
    Reference(out).run({"x": np.zeros((1, 4, 9, 7), np.float32)})
    assert [s.conv for s in result.sites] == ["t0", "t2"]
    assert [s.nodes for s in result.sites] == [("t0", "t1"), ("t2", "t3")]


def test_only_the_convolutions_asked_for_are_rewritten(tmp_path):
    b = Builder()
    y = b.add("Relu", b.conv(b.add("Relu", b.conv("x", 4, 4)), 4, 4))
    result, _ = rewrite(save(b.model(y), tmp_path), only={"n2"})
    assert [n.op_type for n in result.parts.nodes] == ["Conv", "Relu", "CBR"]
