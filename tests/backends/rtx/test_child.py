"""The real builder in its child: engines, refusals, crashes, and a disk that is full."""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from onnx import TensorProto, helper

from tests.models import conv_relu, matmul, save
from trtplug.backends.layer_listing import parse_layer_text
from trtplug.backends.options import BuildOptions
from trtplug.backends.request import BuildRequest, InputRange
from trtplug.backends.rtx.backend import RtxBackend
from trtplug.bundle.engine_file import read_header

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.rtx


def build(
    model: Path, place: Path, before: Callable[[], None] | None = None, **fields: object
) -> tuple[list[dict[str, object]], int]:
    """Events and exit status of one child."""
    place.mkdir(exist_ok=True)
    request = BuildRequest(
        **{
            "target": "rtx-1.7:sm_89",
            "sm": 89,
            "model": str(model),
            "data": None,
            "ranges": (),
            "options": BuildOptions(),
            "folder": str(place),
            **fields,
        }
    )
    child = subprocess.run(
        RtxBackend().child_command(),
        input=request.to_json() + "\n",
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=before,
    )
    return [json.loads(line) for line in child.stdout.splitlines()], child.returncode


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(conv_relu(), tmp_path / "m.onnx")


def test_engine_layers_and_log(tmp_path: Path, model: Path):
    events, status = build(model, tmp_path / "f")
    end = events[-1]
    assert (end["event"], status) == ("built", 0)
    assert events[0] == {"event": "ready"}
    assert {"phase", "step", "end"} <= {e["event"] for e in events}
    engine = (tmp_path / "f/engine").read_bytes()
    header = read_header(tmp_path / "f/engine")
    assert header is not None
    assert header.complete
    assert end["engine_sha256"] == hashlib.sha256(engine).hexdigest()
    assert end["builder_version"] == RtxBackend().version()
    assert str(end["library"]).startswith("libtensorrt_rtx")
    assert end["peak_bytes"] > 50 << 20
    listing = parse_layer_text((tmp_path / "f/layers.txt").read_text())
    assert listing.unparsed == 0
    assert any("conv0" in layer.onnx_layers for layer in listing.layers)
    assert b"] [I] " in (tmp_path / "f/build.log").read_bytes()


def test_several_profiles(tmp_path: Path):
    path = save(conv_relu(shape=("n", 3, "h", "w")), tmp_path / "m.onnx")
    ranges = (InputRange(name="x", min=(1, 3, 16, 16), opt=(1, 3, 32, 32), max=(4, 3, 64, 64)),)
    more = ((InputRange(name="x", min=(8, 3, 64, 64), opt=(8, 3, 64, 64), max=(8, 3, 64, 64)),),)
    events, _ = build(path, tmp_path / "f", ranges=ranges, more_profiles=more)
    assert events[-1]["event"] == "built"
    layers = (tmp_path / "f/layers.txt").read_text()
    assert "OptShape: [1,3,32,32]" in layers
    assert "OptShape: [8,3,64,64]" in layers


def test_repaired_copy_is_read_in_the_files_stead(tmp_path: Path, model: Path):
    copy = save(conv_relu(conv_name="repaired"), tmp_path / "copy.onnx")
    events, _ = build(model, tmp_path / "f", data=str(copy))
    assert events[-1]["event"] == "built"
    assert "repaired" in (tmp_path / "f/layers.txt").read_text()


def test_refusal_names_node_type_and_reason(tmp_path: Path):
    proto = conv_relu(conv_name="odd one")
    proto.graph.node[0].op_type = "Frobnicate"
    events, status = build(save(proto, tmp_path / "m.onnx"), tmp_path / "f")
    assert (events[-1]["event"], status) == ("refused", 0)
    (reason,) = events[-1]["reasons"]
    assert reason.startswith("node 'odd one' (Frobnicate): ")
    assert "Plugin not found" in reason


def test_failure_keeps_the_builders_own_words(tmp_path: Path):
    path = save(matmul(), tmp_path / "m.onnx")
    events, _ = build(path, tmp_path / "f", sm=75, target="rtx-1.7:sm_75")
    assert events[-1]["event"] == "failed"
    assert any("FP32 GEMM is not supported" in r for r in events[-1]["reasons"])


def test_shape_tensor_as_input_is_a_failure_in_words(tmp_path: Path):
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], name="r")],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6]),
            helper.make_tensor_value_info("shape", TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ranges = (InputRange(name="x", min=(2, 6), opt=(2, 6), max=(2, 6)),)
    events, _ = build(save(proto, tmp_path / "m.onnx"), tmp_path / "f", ranges=ranges)
    assert events[-1]["event"] == "failed"
    assert events[-1]["reasons"] == ["input 'shape' holds a shape; its value must be fixed"]


@pytest.mark.parametrize("limit_bytes", [0, 4_000, 100_000])
def test_full_disk_ends_in_words_and_never_in_a_crash(
    tmp_path: Path, model: Path, limit_bytes: int
):
    # Files end at this size, as on a full disk: in the log, in the layers, in the engine.
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))

    events, status = build(model, tmp_path / "f", before=limit)
    assert (events[-1]["event"], status) == ("unwritable", 0)
    assert events[-1]["reasons"] == ["File too large"]


def test_folder_that_is_gone_ends_in_words(tmp_path: Path, model: Path):
    events, status = build(model, tmp_path / "f", folder=str(tmp_path / "gone"))
    assert (events[-1]["event"], status) == ("unwritable", 0)


def test_child_without_a_request_ends(tmp_path: Path):
    child = subprocess.run(
        RtxBackend().child_command(), stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert (child.returncode, child.stdout) == (0, b'{"event": "ready"}\n')


def test_child_dies_with_its_parent():
    script = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,"
        " env={**os.environ, 'TRTPLUG_PARENT': str(os.getpid())})\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", script, *RtxBackend().child_command()],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    pid = int(parent.stdout)
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state in "ZX":
            return
        time.sleep(0.01)
    pytest.fail(f"child {pid} outlived its parent")
