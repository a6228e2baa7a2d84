"""Locks by hand: of TensorRT with tactics, and of RTX without."""

from __future__ import annotations

from dataclasses import replace

from trtplug.bundle.manifest import ManifestEngine, ManifestModel
from trtplug.lock.lock import SCHEMA, Lock, LockCache, LockGpu, LockLayer, LockSite, LockTactic


def layer(name, nodes=(), kernel="k", tactic=None, key=None, kind="correlation") -> LockLayer:
    return LockLayer(
        name=name,
        type=kind,
        onnx_nodes=tuple(nodes),
        kernel=kernel,
        kernel_status="chosen" if kernel else "chosen_at_first_run",
        cache_key=key,
        tactic_hash=tactic,
    )


def tactic(key, tactic_hash, op=None, nodes=()) -> LockTactic:
    return LockTactic(key=key, tactic_hash=tactic_hash, op=op, kernel=None, onnx_nodes=tuple(nodes))


TRT = Lock(
    schema=SCHEMA,
    tool_version="0.1.0",
    model=ManifestModel(file="m.onnx", sha256="0" * 64),
    target="trt-11.4:sm_90",
    backend="trt",
    backend_version="11.4.0.106",
    library="libnvinfer.so.11",
    gpu=LockGpu(name="NVIDIA H200", sm="sm_90", driver="580.95.05", cuda="13.0"),
    shapes=("x=1x3x8x8",),
    precision="keep",
    flags={"tf32": "on"},
    engine=ManifestEngine(
        file="sm_90/m.engine", sha256="1" * 64, canonical_sha256="2" * 64, bytes=1
    ),
    timing_cache=LockCache(file="sm_90/timing.cache", sha256="3" * 64, keys=2),
    layers=(
        layer("move_myl0_0", kind="kgen"),
        layer("conv0+relu0_myl0_1", ["conv0", "relu0"], "fprop", "0x1", "0xa"),
        layer("conv1_myl0_2", ["conv1"], "fprop", "0x2", "0xb"),
    ),
    tactics=(
        tactic("0xa", "0x1", "conv0+relu0", ["conv0", "relu0"]),
        tactic("0xb", "0x2", "conv1", ["conv1"]),
    ),
    sites=(
        LockSite(
            conv="conv0", nodes=("conv0", "relu0"), choice="native", tactic=None, ptx_sha256=None
        ),
    ),
)
RTX = replace(
    TRT,
    target="rtx-1.7:sm_89",
    backend="rtx",
    backend_version="1.7.1.116",
    gpu=None,
    timing_cache=None,
    tactics=None,
)
