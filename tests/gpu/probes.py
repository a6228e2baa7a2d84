"""The probes: each asks TensorRT on this GPU one thing, in a process of its own.

A probe puts what it saw into `facts`; it fails only where it could not ask. What the facts mean
says `tests.gpu.questions`.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.gpu.child import StepFailedError
from tests.gpu.kernels import (
    ADD_WEIGHT,
    ALIGNMENT,
    CLUSTER,
    PADDING,
    SHARED,
    SHARED_BYTES,
    TWO_OUTPUTS,
    add,
    compile_probe,
)
from tests.gpu.plugins import Offer, conv, identity_weight, model_of, offer, plugin_node
from tests.gpu.session import Built, Engine, Session, winners

if TYPE_CHECKING:
    from collections.abc import Callable

    Facts = dict[str, Any]
    Probe = Callable[[Path, Facts], None]

SHAPE = (1, 8, 16, 16)
_OUT = {"y": (SHAPE, np.float32)}


def _sm(session: Session) -> int:
    major, minor = session.layer.device().compute_capability
    return major * 10 + minor


def _x() -> Any:
    return np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)


def _adding(session: Session, name: str, attributes: tuple[str, ...] = ()) -> Offer:
    """A plugin of two tactics that add 1000 and 2000: the output tells which one runs."""
    sm = _sm(session)
    ptx = {t: compile_probe(add(1000 * t), sm).ptx for t in (1, 2)}
    return Offer(name=name, code=lambda tactic, _: ptx[tactic], attributes=attributes)


def _tactic_in(session: Session, plan: bytes) -> int | None:
    """Which tactic of `_adding` an engine runs."""
    loaded = session.engine(plan)
    if session.double:  # it runs nothing, and its inspector tells the tactic
        layers = json.loads(loaded.inspector_text())["Layers"]
        names = [x["TacticName"] for x in layers if x["LayerType"] == "PluginV3"]
        return int(names[0].rpartition("_")[2]) if len(names) == 1 else None
    y = loaded.run({"x": _x()}, _OUT)["y"]
    return round(float(y.mean()) / 1000)


def _plugin_keys(built: Built) -> list[str]:
    """Keys of the timing cache that belong to no table of a native operation."""
    native = {t.key for t in built.tables if "probe" not in t.op}
    return [k for k in built.keys if k not in native]


def plugin_tactics(folder: Path, facts: Facts) -> None:
    """A plugin of two tactics behind a convolution: table, pin, and the flag on a miss."""
    session = Session(folder)
    offer(_adding(session, "Adding"))
    nodes = [conv("x", "c", "conv0", "w0"), plugin_node("Adding", ["c"], ["y"], "probe0")]
    model = model_of(nodes, SHAPE, weights={"w0": identity_weight(8)})
    cold = session.build(model)
    if cold.plan is None:
        raise StepFailedError(f"a plugin of two tactics cannot be built: {cold.problem}")
    tables = [t for t in cold.tables if "probe0" in t.op or "probe0" in "".join(t.onnx_layers)]
    facts["table"] = len(tables) > 0
    facts["candidates"] = [[c.kernel, c.tactic_hash] for t in tables for c in t.candidates]
    facts["native_tables"] = len(cold.tables) - len(tables)
    keys = [t.key for t in tables if t.key in cold.keys] or _plugin_keys(cold)
    facts["plugin_keys"] = {k: cold.keys[k] for k in keys}
    facts["tactic_cold"] = _tactic_in(session, cold.plan)
    _pin(session, model, cold, keys, facts)
    _miss(session, model, cold, keys, facts)


def _pin(session: Session, model: Any, cold: Built, keys: list[str], facts: Facts) -> None:
    if len(keys) != 1:
        facts["pin"] = f"{len(keys)} keys of the plugin in the cache"
        return
    (key,) = keys
    taken = cold.keys[key]
    others = {h for _, h in facts["candidates"]} - {taken}
    if not others and taken in ("0x1", "0x2"):  # perhaps the tactic's own number
        others = {"0x1", "0x2"} - {taken}
    if not others:
        facts["pin"] = "the hash of the other tactic stands nowhere"
        return
    edited = session.edit(cold.cache, {key: (int(min(others), 16), 1.0)})
    if edited is None:
        facts["pin"] = "update() refused it"
        return
    pinned = session.build(model, cache=edited)
    facts["pinned_built"] = pinned.problem or "yes"
    facts["pinned_key"] = pinned.keys.get(key)
    facts["pin"] = "built" if pinned.plan else "not built"
    if pinned.plan is not None:
        facts["tactic_pinned"] = _tactic_in(session, pinned.plan)


def _miss(session: Session, model: Any, cold: Built, keys: list[str], facts: Facts) -> None:
    strict = ("ERROR_ON_TIMING_CACHE_MISS",)
    facts["strict_full"] = session.build(model, flags=strict, cache=cold.cache).problem or "built"
    natives = [k for k in cold.keys if k not in keys]
    for name, gone in (("strict_no_plugin", keys), ("strict_no_native", natives[:1])):
        edited = session.edit(cold.cache, dict.fromkeys(gone)) if gone else None
        if edited is None:
            facts[name] = "not asked: no key to take away" if not gone else "not asked: refused"
        else:
            facts[name] = session.build(model, flags=strict, cache=edited).problem or "built"
    _no_tactic(session, model, cold, natives, facts)


def _no_tactic(session: Session, model: Any, cold: Built, natives: list[str], facts: Facts) -> None:
    """A cache that asks for a tactic that no operation has."""
    if not natives:
        facts["no_tactic"] = "not asked: no native key"
        return
    edited = session.edit(cold.cache, {natives[0]: (0xBAD, 1.0)})
    if edited is None:
        facts["no_tactic"] = "update() refuses it"
        return
    built = session.build(model, cache=edited)
    facts["no_tactic"] = built.problem or f"built, with {built.keys.get(natives[0])}"


def _runs(
    session: Session, offered: Offer, amount: float, facts: Facts, *, prefix: str = ""
) -> None:
    """Builds and runs a plugin that is to give x + amount."""
    offer(offered)
    nodes = [plugin_node(offered.name, ["x"], ["y"], "probe0")]
    built = session.build(model_of(nodes, SHAPE))
    facts[f"{prefix}built"] = built.problem or "yes"
    if built.plan is None:
        return
    try:
        y = session.engine(built.plan).run({"x": _x()}, _OUT)["y"]
    except Exception as error:  # noqa: BLE001 - TensorRT's or CUDA's: it is the answer
        facts[f"{prefix}run"] = f"{type(error).__name__}: {error}"[:300]
        return
    facts[f"{prefix}run"] = "yes"
    facts[f"{prefix}error"] = float(np.abs(y - _x() - amount).max())


def aot_cubin(folder: Path, facts: Facts) -> None:
    """A cubin where the documentation says PTX; and PTX beside it, to see that the probe works."""
    session = Session(folder)
    kernel = compile_probe(add(1), _sm(session))
    _runs(session, Offer(name="Ptx", code=lambda *_: kernel.ptx), 1, facts, prefix="ptx_")
    _runs(session, Offer(name="Cubin", code=lambda *_: kernel.cubin), 1, facts)


def aot_shared_memory(folder: Path, facts: Facts) -> None:
    """64 KiB of dynamic shared memory."""
    session = Session(folder)
    ptx = compile_probe(SHARED, _sm(session)).ptx
    offered = Offer(name="Shared", code=lambda *_: ptx, shared_bytes=SHARED_BYTES)
    _runs(session, offered, 1, facts)


def aot_cluster(folder: Path, facts: Facts) -> None:
    """A kernel that asks for clusters of two blocks in its PTX."""
    session = Session(folder)
    facts["sm"] = _sm(session)
    if facts["sm"] < 90:
        return
    ptx = compile_probe(CLUSTER, facts["sm"]).ptx
    facts["explicit"] = ".explicitcluster" in ptx or ".reqnctapercluster" in ptx
    _runs(session, Offer(name="Cluster", code=lambda *_: ptx, cluster=2), 2, facts)


def argument_order(folder: Path, facts: Facts) -> None:
    """Two outputs that hold x + 1 and x + 2."""
    session = Session(folder)
    ptx = compile_probe(TWO_OUTPUTS, _sm(session)).ptx
    offer(Offer(name="Two", code=lambda *_: ptx, outputs=2))
    nodes = [plugin_node("Two", ["x"], ["y", "z"], "probe0")]
    built = session.build(model_of(nodes, SHAPE, outputs=("y", "z")))
    facts["built"] = built.problem or "yes"
    if built.plan is not None:
        outputs = {"y": (SHAPE, np.float32), "z": (SHAPE, np.float32)}
        found = session.engine(built.plan).run({"x": _x()}, outputs)
        facts["added"] = [float((found[n] - _x()).mean().round(3)) for n in ("y", "z")]


def aot_refit(folder: Path, facts: Facts) -> None:
    """A weight that a plugin reads as an input, set anew in the finished engine."""
    session = Session(folder)
    ptx = compile_probe(ADD_WEIGHT, _sm(session)).ptx
    offer(Offer(name="Weighted", code=lambda *_: ptx, inputs=("x", "w")))
    nodes = [plugin_node("Weighted", ["x", "w0"], ["y"], "probe0")]
    weight = np.full((1, 8, 1, 1), 1, np.float32)
    built = session.build(model_of(nodes, SHAPE, weights={"w0": weight}), flags=("REFIT",))
    facts["built"] = built.problem or "yes"
    if built.plan is None:
        return
    loaded = session.engine(built.plan)
    facts["before"] = _mean_added(loaded)
    trt = session.trt
    if not hasattr(trt, "Refitter"):
        facts["refitter"] = "these bindings have none"
        return
    refitter = trt.Refitter(loaded.native, session.logger)
    facts["names"] = sorted(map(str, refitter.get_all_weights()))
    wanted = [n for n in facts["names"] if "w0" in n]
    if len(wanted) == 1:
        new = np.full_like(weight, 5)
        facts["set"] = bool(refitter.set_named_weights(wanted[0], trt.Weights(new)))
        facts["refitted"] = bool(refitter.refit_cuda_engine())
        facts["after"] = _mean_added(loaded)


def _mean_added(loaded: Engine) -> float:
    y = loaded.run({"x": _x()}, _OUT)["y"]
    return float((y - _x()).mean().round(3))


def tensor_alignment(folder: Path, facts: Facts) -> None:
    """Where tensors of odd sizes lie that are inside the network."""
    session = Session(folder)
    ptx = compile_probe(ALIGNMENT, _sm(session)).ptx
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
    ptx = compile_probe(PADDING, _sm(session)).ptx
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


def module_leak(folder: Path, facts: Facts) -> None:
    """Memory before and after many changes of a dynamic shape."""
    session = Session(folder)
    offer(_adding(session, "Adding"))
    shape = ("n", *SHAPE[1:])
    model = model_of([plugin_node("Adding", ["x"], ["y"], "probe0")], shape)
    sizes = {n: (n, *SHAPE[1:]) for n in (1, 2, 4)}
    built = session.build(model, profile={"x": (sizes[1], sizes[2], sizes[4])})
    facts["built"] = built.problem or "yes"
    if built.plan is None:
        return
    loaded = session.engine(built.plan)

    def change(times: int) -> None:
        for step in range(times):
            at = sizes[(1, 2, 4)[step % 3]]
            loaded.run({"x": np.zeros(at, np.float32)}, {"y": (at, np.float32)})

    change(30)
    before = _memory()
    facts["changes"] = 600
    change(facts["changes"])
    after = _memory()
    facts["device_bytes"] = None if None in (before[0], after[0]) else before[0] - after[0]
    facts["host_bytes"] = after[1] - before[1]


def _memory() -> tuple[Any, int]:
    """Free memory of the device (None: not told), and what this process holds, in bytes."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ask = getattr(ctypes.CDLL("libcuda.so.1"), "cuMemGetInfo_v2", None)
    told = ask is not None and ask(ctypes.byref(free), ctypes.byref(total)) == 0
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return free.value if told else None, pages * os.sysconf("SC_PAGE_SIZE")


def cache_collision(folder: Path, facts: Facts) -> None:
    """Two stock plugins of one shape that differ in an attribute: one key, or two?"""
    session = Session(folder)
    offer(_adding(session, "Tagged", ("tag",)))
    nodes = [
        plugin_node("Tagged", ["x"], ["m"], "probe0", tag=1),
        plugin_node("Tagged", ["m"], ["y"], "probe1", tag=2),
    ]
    built = session.build(model_of(nodes, SHAPE))
    facts["built"] = built.problem or "yes"
    facts["keys"] = sorted(built.keys)


def key_names(folder: Path, facts: Facts) -> None:
    """Keys of native layers: the same network again, with other names, and at another place."""
    session = Session(folder)
    weights = {f"w{i}": identity_weight(8) for i in range(2)}

    def chain(prefix: str) -> Any:
        nodes = [conv("x", "m", f"{prefix}0", "w0"), conv("m", "y", f"{prefix}1", "w1")]
        return model_of(nodes, SHAPE, weights=weights)

    builds = [session.build(chain(name), plugins=False) for name in ("conv", "conv", "other")]
    first, again, renamed = (set(b.keys) for b in builds)
    facts["keys"] = [len(first), len(again), len(renamed)]
    facts["again"] = first == again
    facts["renamed"] = first == renamed
    facts["tables"] = [len(b.tables) for b in builds]
    facts["winners_agree"] = winners(builds[0].tables) == winners(builds[1].tables)


def conv_routes(folder: Path, facts: Facts) -> None:
    """The build routes that this TensorRT offers."""
    session = Session(folder)
    text = session.routes()
    (folder / "probe.json").write_text(text or "{}", encoding="utf-8")
    options = json.loads(text).get("tuner_options", []) if text else []
    facts["offered"] = bool(text)
    facts["routes"] = len(options)
    facts["conv"] = [o["option"] for o in options if "conv" in json.dumps(o).lower()]


def reformat_cost(folder: Path, facts: Facts) -> None:
    """FP16: two convolutions, and the same with a linear plugin between, layer by layer."""
    session = Session(folder)
    channels, shape = 64, (1, 64, 56, 56)
    sm = _sm(session)
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
        found: Facts = {"layers_us": loaded.layer_times_us(feeds, outputs)}
        if not session.double:  # whose clock counts calls
            found["median_us"], found["samples_us"] = loaded.median_us(feeds, outputs)
        facts[name] = found


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


def _against_reference(session: Session, plan: bytes, model: Path) -> float | None:
    """Largest relative L2 error of an engine's outputs against ONNX Runtime; None on the double."""
    from tests.gpu.numbers import reference_of

    feeds, wanted = reference_of(model)
    outputs = {n: (a.shape, a.dtype) for n, a in wanted.items()}
    got = session.engine(plan).run(feeds, outputs)
    if session.double:  # it computes nothing
        return None
    return max(
        float(np.linalg.norm(got[n].astype(np.float64) - a) / np.linalg.norm(a))
        for n, a in wanted.items()
    )


PROBES: dict[str, Probe] = {
    "plugin-tactics": plugin_tactics,
    "aot-cubin": aot_cubin,
    "aot-shared-memory": aot_shared_memory,
    "aot-refit": aot_refit,
    "aot-cluster": aot_cluster,
    "argument-order": argument_order,
    "module-leak": module_leak,
    "cache-collision": cache_collision,
    "key-names": key_names,
    "tensor-alignment": tensor_alignment,
    "padding-lanes": padding_lanes,
    "reformat-cost": reformat_cost,
    "conv-routes": conv_routes,
    "local-function": local_function,
}
