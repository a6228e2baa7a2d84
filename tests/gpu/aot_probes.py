"""Probes of ahead-of-time plugins: what a kernel may be, and what becomes of its tensors."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.gpu.kernels import (
    ADD_WEIGHT,
    CLUSTER,
    FIRST_PTX_OF_ARCH,
    SHARED,
    SHARED_BYTES,
    TWO_OUTPUTS,
    add,
    compile_for_arch,
    compile_probe,
)
from tests.gpu.plugins import Offer, model_of, offer, plugin_node
from tests.gpu.probe_parts import OUT, SHAPE, adding, random_x, sm_of
from tests.gpu.session import Engine, Session

if TYPE_CHECKING:
    from tests.gpu.probe_parts import Facts


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
        y = session.engine(built.plan).run({"x": random_x()}, OUT)["y"]
    except Exception as error:  # noqa: BLE001 - TensorRT's or CUDA's: it is the answer
        facts[f"{prefix}run"] = f"{type(error).__name__}: {error}"[:300]
        return
    facts[f"{prefix}run"] = "yes"
    facts[f"{prefix}error"] = float(np.abs(y - random_x() - amount).max())


def aot_cubin(folder: Path, facts: Facts) -> None:
    """A cubin where the documentation says PTX; and PTX beside it, to see that the probe works."""
    session = Session(folder)
    kernel = compile_probe(add(1), sm_of(session))
    _runs(session, Offer(name="Ptx", code=lambda *_: kernel.ptx), 1, facts, prefix="ptx_")
    _runs(session, Offer(name="Cubin", code=lambda *_: kernel.cubin), 1, facts)


def aot_shared_memory(folder: Path, facts: Facts) -> None:
    """64 KiB of dynamic shared memory."""
    session = Session(folder)
    ptx = compile_probe(SHARED, sm_of(session)).ptx
    offered = Offer(name="Shared", code=lambda *_: ptx, shared_bytes=SHARED_BYTES)
    _runs(session, offered, 1, facts)


def aot_cluster(folder: Path, facts: Facts) -> None:
    """A kernel that asks for clusters of two blocks in its PTX."""
    session = Session(folder)
    facts["sm"] = sm_of(session)
    if facts["sm"] < 90:
        return
    ptx = compile_probe(CLUSTER, facts["sm"]).ptx
    facts["explicit"] = ".explicitcluster" in ptx or ".reqnctapercluster" in ptx
    _runs(session, Offer(name="Cluster", code=lambda *_: ptx, cluster=2), 2, facts)


def aot_arch_specific(folder: Path, facts: Facts) -> None:
    """PTX for this SM alone, such as sm_90a, as wgmma needs it."""
    session = Session(folder)
    facts["sm"] = sm_of(session)
    version = FIRST_PTX_OF_ARCH.get(facts["sm"])
    if version is None:
        return
    ptx = compile_for_arch(add(1), f"sm_{facts['sm']}a", version)
    _runs(session, Offer(name="Arch", code=lambda *_: ptx), 1, facts)


def argument_order(folder: Path, facts: Facts) -> None:
    """Two outputs that hold x + 1 and x + 2."""
    session = Session(folder)
    ptx = compile_probe(TWO_OUTPUTS, sm_of(session)).ptx
    offer(Offer(name="Two", code=lambda *_: ptx, outputs=2))
    nodes = [plugin_node("Two", ["x"], ["y", "z"], "probe0")]
    built = session.build(model_of(nodes, SHAPE, outputs=("y", "z")))
    facts["built"] = built.problem or "yes"
    if built.plan is not None:
        outputs = {"y": (SHAPE, np.float32), "z": (SHAPE, np.float32)}
        found = session.engine(built.plan).run({"x": random_x()}, outputs)
        facts["added"] = [float((found[n] - random_x()).mean().round(3)) for n in ("y", "z")]


def aot_refit(folder: Path, facts: Facts) -> None:
    """A weight that a plugin reads as an input, set anew in the finished engine."""
    session = Session(folder)
    ptx = compile_probe(ADD_WEIGHT, sm_of(session)).ptx
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
    y = loaded.run({"x": random_x()}, OUT)["y"]
    return float((y - random_x()).mean().round(3))


def module_leak(folder: Path, facts: Facts) -> None:
    """Memory before and after many changes of a dynamic shape."""
    session = Session(folder)
    offer(adding(session, "Adding"))
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
    known = ask is not None and ask(ctypes.byref(free), ctypes.byref(total)) == 0
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return free.value if known else None, pages * os.sysconf("SC_PAGE_SIZE")
