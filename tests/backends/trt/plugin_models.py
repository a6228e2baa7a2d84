"""Models with plugin nodes, as the parent makes them for TensorRT, built on the double."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto, helper

from tests.backends.trt.kits import inputs_and_reference
from trtplug.backends.options import BuildOptions
from trtplug.backends.request import BuildRequest, InputRange
from trtplug.ops.cbr import DOMAIN
from trtplug.ops.plugin_layer import LAYER_INPUTS, layer_type, plugin_layer_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tests.doubles.site import Site
    from trtplug.kernels.kit import KitSite

_TYPES = {
    "float": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
}


def model_with(sites: Sequence[KitSite]) -> onnx.ModelProto:
    """A node for each site, side by side: inputs x0, x1, ..., residuals r0, ..., outputs y0, ..."""
    nodes, inputs, outputs, weights = [], [], [], []
    for n, site in enumerate(sites):
        problem = site.problem
        arrays, _ = inputs_and_reference(site, site.tactics[0], problem.x.opt)
        names = LAYER_INPUTS[layer_type(site.op, residual=problem.has_residual)]
        named = {"x": f"x{n}", "residual": f"r{n}"} | {
            k: f"{k}{n}" for k in names if k not in ("x", "residual")
        }
        for key, name in named.items():
            if key in names and key not in ("x", "residual"):
                weights.append(_packed(name, arrays[key], problem.dtype))
        dims = [
            a if a == b else f"d{n}_{i}" for i, (a, b) in enumerate(zip(*ends(site), strict=True))
        ]
        y_dims = [dims[0], problem.outputs, *[_output_dim(site, n, i) for i in (2, 3)]]
        inputs.append(helper.make_tensor_value_info(f"x{n}", _TYPES[problem.dtype], dims))
        if problem.has_residual:
            inputs.append(helper.make_tensor_value_info(f"r{n}", _TYPES[problem.dtype], y_dims))
        outputs.append(helper.make_tensor_value_info(f"y{n}", _TYPES[problem.dtype], y_dims))
        nodes.append(
            plugin_layer_node(
                site.op,
                site.digest,
                [named[k] for k in names],
                f"y{n}",
                f"site{n}",
                residual=problem.has_residual,
            )
        )
    graph = helper.make_graph(nodes, "plugins", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def ends(site: KitSite) -> tuple[Any, Any]:
    return site.problem.x.min, site.problem.x.max


def ranges_of(n: int, site: KitSite) -> list[InputRange]:
    """Of x and, where there is one, of the residual."""
    problem, x = site.problem, site.problem.x
    found = [InputRange(name=f"x{n}", min=x.min, opt=x.opt, max=x.max)]
    if problem.has_residual:
        low, opt, high = map(problem.output, (x.min, x.opt, x.max))
        found.append(InputRange(name=f"r{n}", min=low, opt=opt, max=high))
    return found


def _output_dim(site: KitSite, n: int, axis: int) -> Any:
    low, high = (site.problem.output(end) for end in ends(site))
    return low[axis] if low[axis] == high[axis] else f"o{n}_{axis}"


def _packed(name: str, bits: np.ndarray, dtype: str) -> onnx.TensorProto:
    kind = TensorProto.FLOAT if bits.dtype.itemsize == 4 else _TYPES[dtype]
    return helper.make_tensor(name, kind, bits.reshape(-1).shape, bits.tobytes(), raw=True)


@dataclass(frozen=True, slots=True)
class Build:
    """How the child of the backend ended a build."""

    end: dict[str, Any]
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "build.log").read_text(encoding="utf-8")

    @property
    def inspector(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "inspector.json").read_text())
        return found


def build_on(
    machine: Site, model: Path, kit: Path | None, sites: Sequence[KitSite], **request: Any
) -> Build:
    """Builds a model of `model_with` in the backend's child, on a double's machine."""
    folder = machine.folder / f"build{len(list(machine.folder.glob('build*')))}"
    folder.mkdir()
    ranges = [range_ for n, site in enumerate(sites) for range_ in ranges_of(n, site)]
    given = BuildRequest(
        target="trt-11.4:sm_90",
        sm=request.pop("sm", 90),
        model=str(model),
        data=None,
        ranges=tuple(ranges),
        options=request.pop("options", BuildOptions()),
        folder=str(folder),
        plugin_kit=None if kit is None else str(kit),
        **request,
    )
    done = subprocess.run(
        [sys.executable, "-m", "trtplug.backends.trt.child_build"],
        input=given.to_json() + "\n",
        env=machine.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (folder / "build.log").read_text()
    return Build(json.loads(done.stdout.splitlines()[-1]), folder)
