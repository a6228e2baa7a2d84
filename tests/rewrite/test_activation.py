"""Activations in the spellings that exporters write."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.rewrite.graphs import Builder, prove, save
from trtplug.model.load import load_model
from trtplug.rewrite.find import find_sites
from trtplug.rewrite.site import NearMissReason as Reason


def clip(b: Builder, x: str, low: float | None, high: float | None) -> str:
    if b.opset < 11:
        bounds = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
        return b.add("Clip", x, **bounds)
    inputs = ["" if v is None else b.weight(v) for v in (low, high)]
    return b.add("Clip", x, *inputs)


def hard_gate(b: Builder, x: str) -> str:
    return clip(b, b.add("Add", x, b.weight(3.0)), 0.0, 6.0)


def half_one_plus(b: Builder, gate: str) -> str:
    return b.add("Mul", b.weight(0.5), b.add("Add", gate, b.weight(1.0)))


def erf_gate(b: Builder, x: str) -> str:
    return b.add("Erf", b.add("Div", x, b.weight(math.sqrt(2))))


def tanh_gate(b: Builder, x: str, cube: str) -> str:
    inner = b.add("Add", x, b.add("Mul", cube, b.weight(0.044715)))
    return b.add("Tanh", b.add("Mul", inner, b.weight(math.sqrt(2 / math.pi))))


def sixth(b: Builder, x: str) -> str:
    return b.add("Mul", x, b.weight(1 / 6))


SPELLINGS = {
    "relu": {
        "Relu": lambda b, x: b.add("Relu", x),
        "Clip from 0": lambda b, x: clip(b, x, 0.0, None),
        "Max with 0": lambda b, x: b.add("Max", b.weight(0.0), x),
        "Clip to the largest float": lambda b, x: clip(b, x, 0.0, float(np.finfo(np.float32).max)),
        "Relu twice": lambda b, x: b.add("Relu", b.add("Identity", b.add("Relu", x))),
    },
    "clip": {
        "Clip": lambda b, x: clip(b, x, 0.0, 6.0),
        "Relu, Clip": lambda b, x: clip(b, b.add("Relu", x), None, 6.0),
        "Min, Max": lambda b, x: b.add("Max", b.add("Min", x, b.weight(2.0)), b.weight([-1.5])),
        "max alone": lambda b, x: clip(b, x, None, 0.5),
        "wide bounds": lambda b, x: clip(b, x, -20000.0, 30000.0),
    },
    "leaky_relu": {
        "LeakyRelu": lambda b, x: b.add("LeakyRelu", x, alpha=0.2),
        "default": lambda b, x: b.add("LeakyRelu", x),
        "Max with its product": lambda b, x: b.add("Max", b.add("Mul", x, b.weight(0.1)), x),
        "PRelu of one slope": lambda b, x: b.add("PRelu", x, b.weight([[[0.25]]])),
    },
    "silu": {
        "x first": lambda b, x: b.add("Mul", x, b.add("Sigmoid", x)),
        "Sigmoid first": lambda b, x: b.add("Mul", b.add("Sigmoid", x), x),
        "by Exp": lambda b, x: b.add(
            "Div", x, b.add("Add", b.add("Exp", b.add("Neg", x)), b.weight(1.0))
        ),
    },
    "hard_swish": {
        "Paddle: x * clip / 6": lambda b, x: b.add(
            "Div", b.add("Mul", x, hard_gate(b, x)), b.weight(6.0)
        ),
        "PyTorch: x * (clip / 6)": lambda b, x: b.add(
            "Mul", x, b.add("Div", hard_gate(b, x), b.weight(6.0))
        ),
        "TensorFlow: x * (clip * 1/6)": lambda b, x: b.add("Mul", sixth(b, hard_gate(b, x)), x),
        "(x * clip) * 1/6": lambda b, x: sixth(b, b.add("Mul", hard_gate(b, x), x)),
        "(x * 1/6) * clip": lambda b, x: b.add("Mul", sixth(b, x), hard_gate(b, x)),
        "Relu6 of Relu and Min": lambda b, x: b.add(
            "Mul", x,
            sixth(b, b.add("Min", b.add("Relu", b.add("Add", x, b.weight(3.0))), b.weight(6.0))),
        ),
        "HardSigmoid": lambda b, x: b.add("Mul", x, b.add("HardSigmoid", x, alpha=1 / 6, beta=0.5)),
        "Paddle's HardSigmoid": lambda b, x: b.add(
            "Mul", b.add("HardSigmoid", x, alpha=0.2, beta=0.5), x
        ),
    },
    "hard_sigmoid": {
        "HardSigmoid": lambda b, x: b.add("HardSigmoid", x, alpha=0.2, beta=0.5),
        "default": lambda b, x: b.add("HardSigmoid", x),
        "Clip / 6": lambda b, x: b.add("Div", clip(b, x, 0.0, 6.0), b.weight(6.0)),
    },
    "sigmoid": {"Sigmoid": lambda b, x: b.add("Sigmoid", x)},
    "tanh": {"Tanh": lambda b, x: b.add("Tanh", x)},
    "mish": {
        "Softplus": lambda b, x: b.add("Mul", x, b.add("Tanh", b.add("Softplus", x))),
        "Log of 1 + Exp": lambda b, x: b.add(
            "Mul",
            b.add("Tanh", b.add("Log", b.add("Add", b.add("Exp", x), b.weight(1.0)))),
            x,
        ),
    },
    "gelu": {
        "x * (0.5 * (1 + erf))": lambda b, x: b.add("Mul", x, half_one_plus(b, erf_gate(b, x))),
        "(x * (1 + erf)) * 0.5": lambda b, x: b.add(
            "Mul", b.add("Mul", x, b.add("Add", erf_gate(b, x), b.weight(1.0))), b.weight(0.5)
        ),
        "(0.5 * x) * (1 + erf)": lambda b, x: b.add(
            "Mul", b.add("Mul", b.weight(0.5), x), b.add("Add", b.weight(1.0), erf_gate(b, x))
        ),
        "tanh, Pow": lambda b, x: b.add(
            "Mul", x, half_one_plus(b, tanh_gate(b, x, b.add("Pow", x, b.weight(3.0))))
        ),
        "tanh, products": lambda b, x: b.add(
            "Mul", x,
            half_one_plus(b, tanh_gate(b, x, b.add("Mul", x, b.add("Mul", x, x)))),
        ),
    },
}  # fmt: skip

SINCE = {
    "HardSwish": (14, "hard_swish", {}),
    "Mish": (18, "mish", {}),
    "Gelu": (20, "gelu", {}),
    "Gelu tanh": (20, "gelu", {"approximate": "tanh"}),
    "Swish": (24, "silu", {}),
}


def spelled(kind: str, spelling: str, opset: int) -> tuple[Builder, str]:
    b = Builder(opset=opset)
    return b, SPELLINGS[kind][spelling](b, b.conv("x", 4, 4))


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize(
    ("kind", "spelling"), [(k, s) for k, spellings in SPELLINGS.items() for s in spellings]
)
def test_spellings(tmp_path, kind, spelling, opset):
    b, y = spelled(kind, spelling, opset)
    result = prove(b.model(y), tmp_path, ((2, 4, 9, 7),))
    assert result.sites[0].activation == kind
    assert [n.op_type for n in result.parts.nodes] == ["CBR"]


@pytest.mark.parametrize("name", SINCE)
def test_operators_of_later_opsets(tmp_path, name):
    opset, kind, given = SINCE[name]
    b = Builder(opset=opset)
    y = b.add(name.split()[0], b.conv("x", 4, 4), **given)
    site = prove(b.model(y), tmp_path, ((2, 4, 9, 7),)).sites[0]
    assert site.activation == kind
    assert site.alpha == (1.0 if given else pytest.approx(1 / 6) if kind == "hard_swish" else 0.0)


def test_parameters_are_read(tmp_path):
    expected = {
        ("leaky_relu", "LeakyRelu"): {"alpha": 0.2},
        ("leaky_relu", "Max with its product"): {"alpha": 0.1},
        ("leaky_relu", "PRelu of one slope"): {"alpha": 0.25},
        ("clip", "Min, Max"): {"minimum": -1.5, "maximum": 2.0},
        ("clip", "wide bounds"): {"minimum": -20000.0, "maximum": 30000.0},
        ("clip", "max alone"): {"minimum": -math.inf, "maximum": 0.5},
        ("hard_sigmoid", "Clip / 6"): {"alpha": 1 / 6, "beta": 0.0},
        ("hard_swish", "Paddle's HardSigmoid"): {"alpha": 0.2, "beta": 0.5},
        ("hard_swish", "PyTorch: x * (clip / 6)"): {"alpha": 1 / 6, "beta": 0.5},
    }
    for (kind, spelling), values in expected.items():
        b, y = spelled(kind, spelling, 17)
        sites, _ = find_sites(load_model(save(b.model(y), tmp_path)))
        assert {k: getattr(sites[0], k) for k in values} == pytest.approx(values), spelling


NOT_OURS = {
    "PRelu of many slopes": lambda b, x: b.add("PRelu", x, b.normal(4, 1, 1)),
    "Elu": lambda b, x: b.add("Elu", x),
    "Swish of another slope": lambda b, x: b.add(
        "Mul", x, b.add("Sigmoid", b.add("Mul", x, b.weight(1.702)))
    ),
    "Relu of twice x": lambda b, x: b.add("Add", b.add("Relu", x), b.add("Relu", x)),
    "a gate of another tensor": lambda b, x: b.add("Mul", x, b.add("Sigmoid", "x")),
    "hard-swish / 5": lambda b, x: b.add("Div", b.add("Mul", x, hard_gate(b, x)), b.weight(5.0)),
    "hard-swish + 2": lambda b, x: b.add(
        "Mul", x, b.add("Div", clip(b, b.add("Add", x, b.weight(2.0)), 0.0, 6.0), b.weight(7.0))
    ),
    "a kink far out": lambda b, x: b.add("Add", b.add("Relu", x), clip(b, x, 30000.0, 40000.0)),
}


@pytest.mark.parametrize("name", NOT_OURS)
def test_what_is_none_of_ours_stays(tmp_path, name):
    b = Builder()
    y = NOT_OURS[name](b, b.conv("x", 4, 4))
    result = prove(b.model(y), tmp_path, ((2, 4, 9, 7),))
    assert result.sites[0].activation == "none"


def test_an_activation_that_the_op_has_not_is_counted_by_name(tmp_path):
    b = Builder()
    y = b.add("PRelu", b.conv("x", 4, 4), b.normal(4, 1, 1))
    stop = prove(b.model(y), tmp_path).sites[0].stop
    assert (str(stop), stop.reason) == ("activation:PRelu", Reason.ACTIVATION)


def test_a_part_of_an_activation_that_others_read_stays(tmp_path):
    b = Builder()
    x = b.conv("x", 4, 4)
    gate = b.add("Sigmoid", x)
    result = prove(b.model([b.add("Mul", x, gate), b.add("Relu", gate)]), tmp_path)
    assert result.sites[0].activation == "none"


def test_a_maximum_left_out_is_no_minimum(tmp_path):
    b = Builder()
    y = b.add("Clip", b.conv("x", 4, 4), "", b.weight(6.0))
    site = prove(b.model(y), tmp_path).sites[0]
    assert (site.minimum, site.maximum) == (-math.inf, 6.0)


def test_of_crossed_bounds_the_upper_wins(tmp_path):
    b = Builder()
    site = prove(b.model(clip(b, b.conv("x", 4, 4), 1.0, -1.0)), tmp_path).sites[0]
    assert (site.activation, site.minimum, site.maximum) == ("clip", -1.0, -1.0)


def test_a_bound_fed_at_run_time_stops_the_site(tmp_path):
    b = Builder()
    y = b.add("Clip", b.conv("x", 4, 4), "", "top")
    model = b.model(y)
    model.graph.input.append(helper.make_tensor_value_info("top", TensorProto.FLOAT, []))
    sites, _ = find_sites(load_model(save(model, tmp_path)))
    assert sites[0].stop.reason is Reason.DYNAMIC_CLIP
