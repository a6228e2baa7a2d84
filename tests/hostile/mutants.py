"""Damaged copies of small ONNX files: at the level of bytes, and of protobuf's fields.

Everything is drawn from one seed, so that a number names a mutant for good.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from tests.models import add, conv_chain, conv_relu, matmul, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.message import Message


DYNAMIC = 2
"""Which of the seeds needs a shape."""
SHAPES = ("--shape", "x=1x3x8x8:2x3x8x9:4x3x8x10")


def seeds() -> tuple[onnx.ModelProto, ...]:
    """Small models that use many parts of the format; all but those with dynamic axes build."""
    return (
        conv_relu(),
        conv_relu(ir_version=3, opset=9, weights_as_inputs=True),
        conv_relu(shape=("N", 3, "?", "?")),
        conv_chain(3, channels=4, shape=(1, 4, 8, 8)),
        matmul(),
        add(),
        _batch_norm(),
        _branches(),
        _function(),
        _shape_arithmetic(),
    )


def mutant(number: int, sources: tuple[bytes, ...]) -> tuple[bytes, tuple[str, ...]]:
    """The mutant of a number, and the flags that its source needs.

    About half of the mutations are at the level of fields.
    """
    dice = random.Random(number)
    data = source = dice.choice(sources)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        data = dice.choice(_MUTATIONS)(data, dice)
    return data, SHAPES if source == sources[DYNAMIC] else ()


def _flip(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def _insert(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data) + 1)
    return data[:place] + dice.randbytes(dice.randrange(1, 9)) + data[place:]


def _cut(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data) + 1)
    return data[:place] + data[place + dice.randrange(1, 40) :]


def _double(data: bytes, dice: random.Random) -> bytes:
    """A piece twice: protobuf merges what it meets twice."""
    start = dice.randrange(len(data) + 1)
    piece = data[start : start + dice.randrange(1, 400)]
    place = dice.randrange(len(data) + 1)
    return data[:place] + piece + data[place:]


def _field(data: bytes, dice: random.Random) -> bytes:
    """Another value in one field, a field cleared, or an entry of a list dropped or doubled."""
    try:
        proto = onnx.ModelProto.FromString(data)
        message = dice.choice(list(_messages(proto)))
        fields = [f for f, _ in message.ListFields()] or list(message.DESCRIPTOR.fields)
        _change(message, dice.choice(fields), dice)
        return proto.SerializeToString()
    except (DecodeError, ValueError, TypeError):
        return data


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for inner in value if field.is_repeated else (value,):
                yield from _messages(inner)


def _change(message: Message, field: FieldDescriptor, dice: random.Random) -> None:
    value = getattr(message, field.name)
    if field.is_repeated:
        if value and dice.random() < 0.5:
            del value[dice.randrange(len(value))]
        elif value and field.type == FieldDescriptor.TYPE_MESSAGE:
            value.add().CopyFrom(dice.choice(list(value)))
        elif field.type != FieldDescriptor.TYPE_MESSAGE:
            value.insert(0, _value(field, dice))
    elif field.type == FieldDescriptor.TYPE_MESSAGE or dice.random() < 0.2:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _value(field, dice))


_NUMBERS = (0, 1, -1, 2, 3, 7, 10, 255, 2**31 - 1, 2**31, 2**62, -(2**63))
_TEXTS = (
    "",
    "x",
    "y",
    "w0",
    "conv0_out",
    "Conv",
    "Relu",
    "<script>",
    "a/b:c",
    "\n",
    "é",
    "0" * 300,
)


def _value(field: FieldDescriptor, dice: random.Random) -> object:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return dice.randbytes(dice.randrange(64))
        return dice.choice(_TEXTS)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return dice.choice((0.0, -1.0, float("nan"), float("inf"), 1e38))
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return dice.choice([v.number for v in field.enum_type.values])
    number = dice.choice(_NUMBERS)
    return number if field.cpp_type == FieldDescriptor.CPPTYPE_INT64 else number % 2**31


_MUTATIONS = (_flip, _flip, _truncate, _insert, _cut, _double, *[_field] * 8)


def _batch_norm() -> onnx.ModelProto:
    node = helper.make_node("BatchNormalization", list("xsbmv"), ["y"], name="bn0", epsilon=1e-3)
    weights = dict.fromkeys("sbmv", np.ones(3, np.float32))
    shape = (1, 3, 4, 4)
    return model_of([node], inputs={"x": shape}, outputs={"y": shape}, weights=weights)


def _branches() -> onnx.ModelProto:
    def branch(op: str) -> onnx.GraphProto:
        out = helper.make_tensor_value_info(op, TensorProto.FLOAT, [4])
        node = helper.make_node(op, ["x"], [op], name=f"in_{op}")
        return helper.make_graph([node], op, [], [out])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], name="sum0", keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"], name="greater0"),
        helper.make_node("If", ["c"], ["y"], name="if0", then_branch=branch("Relu"),
                         else_branch=branch("Neg")),
    ]  # fmt: skip
    weights = {"zero": np.zeros((), np.float32)}
    return model_of(nodes, inputs={"x": (4,)}, outputs={"y": (4,)}, weights=weights)


def _function() -> onnx.ModelProto:
    proto = model_of(
        [helper.make_node("Twice", ["x"], ["y"], name="f0", domain="tests")],
        inputs={"x": (4,)},
        outputs={"y": (4,)},
    )
    opsets = list(proto.opset_import)
    body = [helper.make_node("Add", ["a", "a"], ["b"], name="add0")]
    proto.functions.append(helper.make_function("tests", "Twice", ["a"], ["b"], body, opsets))
    proto.opset_import.append(helper.make_opsetid("tests", 1))
    return proto


def _shape_arithmetic() -> onnx.ModelProto:
    four = numpy_helper.from_array(np.array([-1, 4], np.int64), "v")
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape0"),
        helper.make_node("Gather", ["s", "zero"], ["n"], name="gather0"),
        helper.make_node("Constant", [], ["four"], name="constant0", value=four),
        helper.make_node("Reshape", ["x", "four"], ["y"], name="reshape0"),
        helper.make_node("Mul", ["n", "n"], ["z"], name="mul0"),
    ]
    weights = {"zero": np.array(0, np.int64)}
    return model_of(nodes, inputs={"x": (2, 8)}, outputs={"y": ("a", 4)}, weights=weights)
