"""ONNX Runtime's outputs of a model, to hold an engine against; the GPU's state beside times."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def reference_of(model: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random inputs, and outputs of ONNX Runtime on the CPU, both by name."""
    import onnx

    from trtplug.measure.reference import Reference, random_feeds
    from trtplug.tensor import TensorSpec

    specs, sizes = [], {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        dims = tuple(d.dim_value for d in value.type.tensor_type.shape.dim)
        kind = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        specs.append(TensorSpec(name=value.name, dtype=kind, shape=dims))
        sizes[value.name] = dims
    feeds = random_feeds(specs, sizes, 0)
    return feeds, Reference(model).run(feeds)


def relative_error(got: Mapping[str, Any], wanted: Mapping[str, Any]) -> float | str:
    """Largest relative L2 error of the outputs; words where one is no number."""
    import numpy as np

    errors = [
        float(np.linalg.norm(got[n].astype(np.float64) - a) / np.linalg.norm(a))
        for n, a in wanted.items()
    ]
    return max(errors) if np.isfinite(errors).all() else "not a number"


_STATE = "clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu,pstate"


def gpu_state() -> dict[str, str] | None:
    """Clocks, power and temperature in nvidia-smi's words; None where it does not tell."""
    command = ("nvidia-smi", f"--query-gpu={_STATE}", "--format=csv,noheader", "--id=0")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    values = [word.strip() for word in done.stdout.strip().split(",")]
    names = _STATE.split(",")
    return dict(zip(names, values, strict=True)) if len(values) == len(names) else None
