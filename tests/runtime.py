"""What the installed ONNX Runtime takes: 1.23.2, the newest for Python 3.10, stops at opset 23."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from onnx import TensorProto, defs, helper, inliner, load
from onnx.reference import ReferenceEvaluator

from trtplug.measure.accuracy import compare_outputs
from trtplug.measure.equality import SEEDS, Trial, compare_models
from trtplug.measure.reference import random_feeds

if TYPE_CHECKING:
    from pathlib import Path

    from trtplug.tensor import Sizes, TensorSpec


@functools.cache
def newest_opset() -> int:
    """The newest that it loads a model of."""
    return next(n for n in range(defs.onnx_opset_version(), 0, -1) if _takes(n))


def _takes(opset: int) -> bool:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    value = functools.partial(
        helper.make_tensor_value_info, elem_type=TensorProto.FLOAT, shape=(1,)
    )
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])], "g", [value("x")], [value("y")]
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    try:
        onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001
        return False
    return True


def compare_anywhere(
    first: Path, second: Path, inputs: tuple[TensorSpec, ...], shapes: list[dict[str, Sizes]]
) -> tuple[Trial, ...]:
    """As `compare_models`; opsets that ONNX Runtime does not take run in onnx's own evaluator."""
    model = load(first)
    if next(o.version for o in model.opset_import if not o.domain) <= newest_opset():
        return compare_models(first, second, inputs, shapes)
    runs = [ReferenceEvaluator(inliner.inline_local_functions(m)) for m in (model, load(second))]
    names = [output.name for output in model.graph.output]
    trials = []
    for sizes in shapes:
        for seed in SEEDS:
            feeds = random_feeds(inputs, sizes, seed)
            one, two = (dict(zip(names, run.run(names, feeds), strict=True)) for run in runs)
            trials.append(Trial(sizes=sizes, seed=seed, outputs=compare_outputs(one, two)))
    return tuple(trials)
