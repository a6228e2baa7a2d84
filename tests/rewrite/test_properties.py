"""Random graphs of convolutions: the rewritten model equals the original, in every opset."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rewrite.graphs import Builder, prove, save
from tests.rewrite.test_activation import SPELLINGS, clip
from trtplug.model.load import load_model
from trtplug.rewrite.find import find_sites

OPSETS = tuple(range(7, 25))

_NEED_ERF = 9


@dataclasses.dataclass(frozen=True)
class Block:
    """One convolution and what surrounds it."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    group: int
    bias: bool
    weight_layout: str
    shared: bool
    before: tuple[str, ...]
    after: tuple[str, ...]
    activation: tuple[str, str] | None
    residual: str
    extra: str


def blocks() -> st.SearchStrategy[Block]:
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    spellings = [(k, s) for k, all_of in SPELLINGS.items() for s in all_of]
    return st.builds(
        Block,
        kernel=pair,
        strides=st.tuples(st.integers(1, 2), st.integers(1, 2)),
        pads=st.tuples(*[st.integers(0, 2)] * 4),
        dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
        group=st.sampled_from([1, 2, 4]),
        bias=st.booleans(),
        weight_layout=st.sampled_from(
            ["initializer", "identity", "constant", "reshape", "transpose"]
        ),
        shared=st.booleans(),
        before=st.lists(st.sampled_from(["mul", "add", "pad", "sub"]), max_size=2).map(tuple),
        after=st.lists(
            st.sampled_from(
                ["bn", "caffe2", "mul", "add", "sub", "div", "rsub", "identity", "dropout"]
            ),
            max_size=3,
        ).map(tuple),
        activation=st.none() | st.sampled_from(spellings),
        residual=st.sampled_from(["none", "none", "before", "after", "two"]),
        extra=st.sampled_from(["none", "none", "none", "output", "reader"]),
    )


class Writer(Builder):
    """Writes blocks in a given opset."""

    def __init__(self, opset: int, seed: int) -> None:
        super().__init__(opset, seed)
        self.outputs: list[str] = []
        self.weight_of: dict[tuple, str] = {}

    def unsqueeze(self, x: str, axes: list[int]) -> str:
        if self.opset < 13:
            return self.add("Unsqueeze", x, axes=axes)
        return self.add("Unsqueeze", x, self.weight(axes, np.int64))

    def vector(self, low: float = 0.5, high: float = 1.5) -> np.ndarray:
        return self.random.uniform(low, high, 4)

    def stored(self, value: np.ndarray, layout: str) -> str:
        value = value.astype(np.float32)
        if layout == "identity":
            return self.add("Identity", self.weight(value))
        if layout == "constant":
            from onnx import numpy_helper

            return self.add("Constant", value=numpy_helper.from_array(value))
        if layout == "reshape":
            shape = self.weight(value.shape, np.int64)
            return self.add("Reshape", self.weight(value.reshape(-1)), shape)
        if layout == "transpose":
            order = [1, 0, 2, 3]
            return self.add("Transpose", self.weight(value.transpose(order)), perm=order)
        return self.weight(value)

    def convolution(self, x: str, block: Block) -> str:
        shape = (4, 4 // block.group, *block.kernel)
        key = (shape, block.weight_layout)
        if not block.shared or key not in self.weight_of:
            value = self.random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
            self.weight_of[key] = self.stored(value, block.weight_layout)
        inputs = [x, self.weight_of[key]] + ([self.normal(4)] if block.bias else [])
        return self.add(
            "Conv", *inputs, strides=block.strides, pads=block.pads, dilations=block.dilations,
            group=block.group,
        )  # fmt: skip

    def step(self, kind: str, x: str) -> str:
        constant = self.weight(self.vector().reshape(1, 4, 1, 1))
        match kind:
            case "bn":
                return self.batch_norm(x, 4)
            case "caffe2":
                y = self.add("Mul", self.batch_norm(x, 4), self.unsqueeze(self.normal(4), [1, 2]))
                return self.add("Add", y, self.unsqueeze(self.normal(4), [1, 2]))
            case "rsub":
                return self.add("Sub", constant, x)
            case "identity":
                return self.add("Identity", x)
            case "dropout":
                return self.add("Dropout", x)
            case "pad":
                pads = [0, 0, 1, 0, 0, 0, 0, 2]
                if self.opset < 11:
                    return self.add("Pad", x, pads=pads)
                return self.add("Pad", x, self.weight(pads, np.int64))
            case _:
                return self.add(kind.capitalize(), x, constant)

    def write(self, x: str, block: Block) -> str:
        start = x
        for kind in block.before:
            x = self.step(kind, x)
        source = x
        x = self.convolution(x, block)
        if block.extra == "output":
            self.outputs.append(x)
        for kind in block.after:
            x = self.step(kind, x)
        if block.residual == "two":
            x = self.add("Add", self.convolution(source, block), x)
        if block.residual == "before":
            x = self.add("Add", self.convolution(source, block), x)
        if block.activation is not None:
            kind, spelling = block.activation
            x = SPELLINGS[kind][spelling](self, x)
        if block.residual == "after":
            x = self.add("Add", x, self.add("Neg", self.convolution(source, block)))
        if block.extra == "reader":
            self.outputs.append(clip(self, x, -1.0, 1.0))
        assert start
        return x


def write(all_of: list[Block], opset: int, seed: int):
    writer = Writer(opset, seed)
    y = "x"
    for block in all_of:
        y = writer.write(y, block)
    names = list(dict.fromkeys([*writer.outputs, y]))
    return writer.model(names, {"x": ("N", 4, "H", "W")}, ir_version=8 if opset < 21 else 10)


def needed_opset(all_of: list[Block]) -> int:
    spelled = [b.activation for b in all_of if b.activation is not None]
    return _NEED_ERF if any("erf" in s for _, s in spelled) else 7


few = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@few
@given(st.lists(blocks(), min_size=1, max_size=3), st.sampled_from(OPSETS), st.integers(0, 99))
def test_rewritten_equals_original_and_twice_equals_once(all_of, opset, seed):
    model = write(all_of, max(opset, needed_opset(all_of)), seed)
    with tempfile.TemporaryDirectory() as folder:
        prove(model, Path(folder), ((1, 4, 40, 43), (2, 4, 38, 39)))


@settings(few, max_examples=30)
@given(st.lists(blocks(), min_size=1, max_size=2), st.integers(0, 99))
def test_the_sites_are_the_same_in_every_opset(all_of, seed):
    with tempfile.TemporaryDirectory() as folder:
        found = set()
        for opset in OPSETS:
            if opset >= needed_opset(all_of):
                sites, misses = find_sites(
                    load_model(save(write(all_of, opset, seed), Path(folder)))
                )
                found.add((tuple(_known_in_all(s) for s in sites), misses))
        assert len(found) == 1


def _known_in_all(site):
    """Without labels of nodes: their numbers depend on how many constants an opset needs."""
    blank = {"conv": "", "nodes": len(site.nodes), "folded": len(site.folded), "input": "",
             "output": "", "stop": site.stop and site.stop.reason}  # fmt: skip
    return tuple({**dataclasses.asdict(site), **blank}.items())
