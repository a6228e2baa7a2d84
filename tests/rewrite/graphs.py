"""Graphs with convolutions, built in code, and the proof that a rewrite kept their outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.runtime import compare_anywhere
from trtplug.measure.equality import EXACT, worst
from trtplug.model.load import load_model
from trtplug.model.save import save_model
from trtplug.model.validate import check_parts
from trtplug.rewrite.run import Rewrite, rewrite_model


class Builder:
    """Collects nodes and weights; every tensor has a name of its own."""

    def __init__(self, opset: int = 17, seed: int = 0, dtype: type = np.float32) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.random = np.random.default_rng(seed)
        self.dtype = dtype

    def add(self, op: str, *inputs: str, outputs: int = 1, name: str | None = None, **given) -> str:
        names = [f"t{len(self.nodes)}" + (f"_{i}" if i else "") for i in range(outputs)]
        node = helper.make_node(
            op, list(inputs), names, name=name or f"n{len(self.nodes)}", **given
        )
        self.nodes.append(node)
        return names[0]

    def weight(self, value: np.ndarray | float | list, dtype: type | None = None) -> str:
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype or self.dtype)
        return name

    def normal(self, *shape: int) -> str:
        return self.weight(self.random.standard_normal(shape) * 0.5)

    def conv(self, x: str, channels: int, per_group: int, kernel=(3, 3), bias=True, **given) -> str:
        given.setdefault("pads", [k // 2 for k in kernel] * 2)
        inputs = [x, self.normal(channels, per_group, *kernel)]
        inputs += [self.normal(channels)] if bias else []
        return self.add("Conv", *inputs, **given)

    def batch_norm(self, x: str, channels: int, **given) -> str:
        parameters = [
            self.weight(self.random.uniform(0.5, 2, channels)),
            self.normal(channels),
            self.normal(channels),
            self.weight(self.random.uniform(0.5, 2, channels)),
        ]
        return self.add("BatchNormalization", x, *parameters, **given)

    def model(
        self,
        outputs: str | list[str],
        inputs: dict[str, tuple] | None = None,
        ir_version: int = 8,
        elem_type: int = TensorProto.FLOAT,
        extra_inputs: tuple[onnx.ValueInfoProto, ...] = (),
        **graph,
    ) -> onnx.ModelProto:
        names = [outputs] if isinstance(outputs, str) else outputs
        inputs = inputs if inputs is not None else {"x": ("N", 4, 9, 7)}
        values = [helper.make_tensor_value_info(n, elem_type, s) for n, s in inputs.items()]
        return helper.make_model(
            helper.make_graph(
                self.nodes,
                "g",
                [*values, *extra_inputs],
                [helper.make_tensor_value_info(n, elem_type, [None] * 4) for n in names],
                [numpy_helper.from_array(w, n) for n, w in self.weights.items()],
                **graph,
            ),
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=ir_version,
        )


def save(model: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def rewrite(path: Path, **options) -> tuple[Rewrite, Path]:
    """Rewrites a file into `rewritten.onnx` beside it; it has passed the checker."""
    result = rewrite_model(load_model(path), **options)
    out = path.with_name("rewritten.onnx")
    check_parts(result.parts, out)
    save_model(result.parts, out)
    onnx.checker.check_model(str(out), full_check=True)
    return result, out


def prove(
    model: onnx.ModelProto | Path,
    folder: Path,
    shapes: tuple = ((1, 4, 9, 7), (3, 4, 9, 7)),
    **options,
) -> Rewrite:
    """Rewrites a model and checks that inputs, outputs and values stayed the same."""
    path = model if isinstance(model, Path) else save(model, folder)
    before = path.read_bytes()
    result, out = rewrite(path, **options)
    assert path.read_bytes() == before
    source, made = load_model(path), load_model(out)
    assert (source.inputs, source.outputs) == (made.inputs, made.outputs)
    sizes = [{spec.name: shape if i == 0 else _fixed(spec) for i, spec in enumerate(source.inputs)}
             for shape in shapes]  # fmt: skip
    trials = compare_anywhere(path, out, source.inputs, sizes)
    assert all(o.within(EXACT) for t in trials for o in t.outputs), worst(trials)
    again = rewrite_model(made, **options)
    assert again.sites == ()
    assert again.parts.to_proto().graph == made.proto.graph
    return result


def _fixed(spec) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else 2 for d in spec.shape)
