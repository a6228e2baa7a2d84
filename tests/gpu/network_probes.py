"""Probes of tensors inside a network, of reformats, routes and functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from tests.gpu.child import StepFailedError
from tests.gpu.kernels import (
    ALIGNMENT,
    PADDING,
    add,
    compile_probe,
)
from tests.gpu.plugins import Offer, conv, identity_weight, model_of, offer, plugin_node
from tests.gpu.probe_parts import sm_of
from tests.gpu.session import Session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gpu.probe_parts import Facts


def tensor_alignment(folder: Path, facts: Facts) -> None:
    """Where tensors of odd sizes lie that are inside the network."""
    session = Session(folder)
    ptx = compile_probe(ALIGNMENT, sm_of(session)).ptx
    offer(Offer(name="Alignment", code=lambda *_: ptx))
    shape = (1, 3, 5, 7)
    names = ["x", "c", "a", "b", "y"]
    nodes = [conv("x", "c", "conv0", "w0")]
    nodes += [
        plugin_node("Alignment", [names[i]], [names[i + 1]], f"probe{i}") for i in range(1, 4)
    ]
    built = session.build(model_of(nodes, shape, weights={"w0": identity_weight(3)}))
    facts["built"] = built.problem or "yes"
    if built.plan is None:
        return
    feeds = {"x": np.zeros(shape, np.float32)}
    y = session.engine(built.plan).run(feeds, {"y": (shape, np.float32)})["y"]
    facts["offsets"] = [int(v) for v in y.reshape(-1)[:3]]


def padding_lanes(folder: Path, facts: Facts) -> None:
    """Lanes of HWC8 beyond the channels, behind an input that is reformatted and a convolution."""
    session = Session(folder)
    ptx = compile_probe(PADDING, sm_of(session)).ptx
    offer(Offer(name="Padding", code=lambda *_: ptx, types="FP16", formats="HWC8", per_pixel=True))
    shape = (1, 3, 16, 16)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float16)
    last = plugin_node("Padding", ["c"], ["y"], "probe0")
    first = plugin_node("Padding", ["x"], ["y"], "probe0")
    networks = {
        "behind_input": ([first], {}),
        "behind_conv": (
            [conv("x", "c", "conv0", "w0"), last],
            {"w0": identity_weight(3, half=True)},
        ),
    }
    for name, (nodes, weights) in networks.items():
        built = session.build(model_of(nodes, shape, weights=weights, half=True))
        if built.plan is None:
            facts[name] = built.problem
            continue
        y = session.engine(built.plan).run({"x": x}, {"y": (shape, np.float16)})["y"]
        facts[name] = int(np.count_nonzero(y[:, 0]))


def reformat_cost(folder: Path, facts: Facts) -> None:
    """FP16: two convolutions, and the same with a linear plugin between, layer by layer."""
    session = Session(folder)
    channels, shape = 64, (1, 64, 56, 56)
    sm = sm_of(session)
    text = add(0).replace("float*", "unsigned short*").replace(" + 0.0f", "")
    ptx = compile_probe(text, sm).ptx
    offer(Offer(name="Copy", code=lambda *_: ptx, types="FP16"))
    weights = {f"w{i}": identity_weight(channels, half=True) for i in range(2)}
    feeds = {"x": np.zeros(shape, np.float16)}
    outputs = {"y": (shape, np.float16)}
    networks = {
        "native": [conv("x", "m", "conv0", "w0"), conv("m", "y", "conv1", "w1")],
        "plugin": [
            conv("x", "m", "conv0", "w0"),
            plugin_node("Copy", ["m"], ["p"], "probe0"),
            conv("p", "y", "conv1", "w1"),
        ],
    }
    for name, nodes in networks.items():
        built = session.build(model_of(nodes, shape, weights=weights, half=True))
        if built.plan is None:
            facts[name] = built.problem
            continue
        loaded = session.engine(built.plan)
        found: Facts = {}
        if not session.double:  # whose clock counts calls
            found["median_us"], found["samples_us"] = loaded.median_us(feeds, outputs)
        # Last: with a profiler every run waits for its layers.
        found["layers_us"] = loaded.layer_times_us(feeds, outputs)
        facts[name] = found


def conv_routes(folder: Path, facts: Facts) -> None:
    """The build routes that this TensorRT offers."""
    session = Session(folder)
    text = session.routes()
    (folder / "probe.json").write_text(text or "{}", encoding="utf-8")
    options = json.loads(text).get("tuner_options", []) if text else []
    facts["offered"] = bool(text)
    facts["routes"] = len(options)
    facts["conv"] = [o["option"] for o in options if "conv" in json.dumps(o).lower()]


def local_function(folder: Path, facts: Facts) -> None:
    """A rewritten model where no plugin of ours is registered: are its functions read?"""
    import onnx

    from tests.gpu.cli import trtplug
    from tests.gpu.networks import two_kinds

    source, rewritten = folder / "two.onnx", folder / "rewritten.onnx"
    onnx.save(two_kinds(), source)
    ran = trtplug(folder, "rewrite", source.name, "-o", rewritten.name)
    if ran.status:
        raise StepFailedError(f"trtplug rewrite: {ran.err[-300:]}")
    session = Session(folder)
    built = session.build(onnx.load(rewritten), plugins=False)
    facts["built"] = built.problem or "yes"
    if built.plan is not None:
        facts["error"] = _against_reference(session, built.plan, source)


def _against_reference(session: Session, plan: bytes, model: Path) -> float | str | None:
    """Relative error of an engine's outputs against ONNX Runtime's; None on the double."""
    from tests.gpu.numbers import reference_of, relative_error

    feeds, wanted = reference_of(model)
    outputs = {n: (a.shape, a.dtype) for n, a in wanted.items()}
    got = session.engine(plan).run(feeds, outputs)
    return None if session.double else relative_error(got, wanted)
