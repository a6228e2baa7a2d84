"""1,000 mutated small models through `sites` and `rewrite`: words or a valid file, no traceback."""

from __future__ import annotations

import functools
import random

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from tests.rewrite.graphs import Builder
from tests.rewrite.test_activation import SPELLINGS
from trtplug import errors
from trtplug.cli.main import main

MUTATIONS = 1000
PRECISIONS = ((), (), (), ("--precision", "fp16"))

FOLDS = 10
"""The mutations are spread over so many tests, so that workers can share them."""


@functools.cache
def seeds() -> tuple[bytes, ...]:
    residual, pooled, branchy = Builder(), Builder(opset=9), Builder(opset=24)
    y = residual.batch_norm(residual.conv("x", 4, 4), 4)
    y = residual.add("Relu", residual.add("Add", "x", y))
    pad = pooled.add("Pad", "x", pads=[0, 0, 1, 1, 0, 0, 1, 1])
    z = pooled.add(
        "MaxPool", pooled.add("Relu", pooled.conv(pad, 8, 2, group=2)), kernel_shape=[2, 2]
    )
    c = branchy.conv(branchy.add("Mul", "x", branchy.normal(1, 4, 1, 1)), 4, 1, group=4)
    shape = branchy.weight([0, 0, -1, 1], np.int64)
    g = branchy.add("Reshape", SPELLINGS["hard_swish"]["Paddle: x * clip / 6"](branchy, c), shape)
    models = (residual.model(y), pooled.model(z), branchy.model(g))
    return tuple(m.SerializeToString() for m in models)


def mutate(seed: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.25:
        data = bytearray(seed)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    model = onnx.ModelProto.FromString(seed)
    for _ in range(rng.randint(1, 3)):
        rng.choice(CHANGES)(model, rng)
    return model.SerializeToString()


def change_attribute(model: onnx.ModelProto, rng: random.Random) -> None:
    found = [a for n in model.graph.node for a in n.attribute]
    if not found:
        return
    attribute = rng.choice(found)
    kind = rng.randrange(5)
    if kind == 0 and attribute.ints:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice([-7, 0, 2, 3, 2**40])
    elif kind == 1:
        attribute.ints.append(rng.randint(-2, 4))
    elif kind == 2:
        attribute.i = rng.choice([-1, 0, 3, 7, 2**62])
    elif kind == 3:
        attribute.type = rng.randrange(15)
    else:
        attribute.name = rng.choice(["pads", "group", "kernel_shape", "auto_pad", "zzz", ""])


def change_wire(model: onnx.ModelProto, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    names = [n for x in model.graph.node for n in (*x.input, *x.output)] + ["", "nowhere"]
    field = rng.choice([node.input, node.output])
    if field and rng.random() < 0.7:
        field[rng.randrange(len(field))] = rng.choice(names)
    elif field and rng.random() < 0.5:
        del field[-1]
    else:
        field.append(rng.choice(names))


def change_node(model: onnx.ModelProto, rng: random.Random) -> None:
    nodes = model.graph.node
    node = rng.choice(nodes)
    match rng.randrange(4):
        case 0:
            node.op_type = rng.choice(
                ["Conv", "Add", "Relu", "Clip", "Identity", "Cast", "Constant", "Split", "Pad",
                 "BatchNormalization", "Transpose", "Concat", "Sum", "If", "Nothing"]
            )  # fmt: skip
        case 1:
            nodes.append(node)
        case 2:
            nodes.remove(node)
        case _:
            node.domain = rng.choice(["", "ai.onnx", "local"])


def change_tensor(model: onnx.ModelProto, rng: random.Random) -> None:
    if not model.graph.initializer:
        return
    tensor = rng.choice(model.graph.initializer)
    match rng.randrange(6):
        case 0:
            tensor.dims.append(rng.choice([-1, 0, 1, 3]))
        case 1 if tensor.dims:
            tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice([-3, 0, 1, 5, 2**33])
        case 2:
            tensor.data_type = rng.choice([0, 1, 7, 10, 11, 16, 99])
        case 3:
            tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
        case 4:
            tensor.raw_data = bytes(len(tensor.raw_data))
        case _:
            tensor.data_location = TensorProto.EXTERNAL


def change_border(model: onnx.ModelProto, rng: random.Random) -> None:
    match rng.randrange(5):
        case 0:
            model.opset_import[0].version = rng.choice([1, 6, 7, 13, 22, 99])
        case 1:
            model.ir_version = rng.choice([0, 3, 4, 13, 99])
        case 2 if model.graph.input:
            dims = model.graph.input[0].type.tensor_type.shape.dim
            if dims:
                dims[rng.randrange(len(dims))].dim_value = rng.choice([-1, 0, 1, 2**31])
        case 3:
            model.graph.output.add(
                name=rng.choice([n.output[0] for n in model.graph.node if n.output])
            )
        case _:
            model.graph.input.add(name=rng.choice(["x", "w0", "new"]))


CHANGES = (change_attribute, change_wire, change_node, change_tensor, change_border)


@pytest.mark.parametrize("fold", range(FOLDS))
def test_mutated_models(tmp_path, capsys, fold):
    model, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    for number in range(fold, MUTATIONS, FOLDS):
        rng = random.Random(number)
        model.write_bytes(mutate(rng.choice(seeds()), rng))
        statuses = [
            main(["sites", str(model), "--format", "json"]),
            main(["rewrite", str(model), "-o", str(out), *PRECISIONS[number % 4]]),
        ]
        words = capsys.readouterr().err
        assert set(statuses) <= {errors.DONE, errors.BAD_INPUT, errors.BUILD_FAILED}, (
            number,
            words,
        )
        assert "Traceback" not in words
        if out.exists():
            onnx.checker.check_model(str(out))
            out.unlink()
        assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"], number
