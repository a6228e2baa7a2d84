"""Importing trtplug or asking for its help loads nothing heavy; held in a fresh interpreter."""

import json
import subprocess
import sys

import pytest

HEAVY = (
    "cuda",
    "jinja2",
    "numpy",
    "onnx",
    "onnxruntime",
    "pycuda",
    "pydantic",
    "ray",
    "sympy",
    "tensorrt",
    "tensorrt_rtx",
    "torch",
)

PROBE = """
import contextlib, io, json, runpy, sys
sys.argv[0] = "trtplug"
module = sys.argv.pop(1)
status = None
with contextlib.redirect_stdout(io.StringIO()) as out:
    if module == "trtplug":
        import trtplug
    else:
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as stop:
            status = stop.code or 0
print(json.dumps({"modules": sorted({m.split(".")[0] for m in sys.modules}), "status": status,
                  "out": out.getvalue()}))
"""


def probe(*argv, cwd):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *argv], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_loads_nothing_heavy(tmp_path):
    assert not set(probe("trtplug", cwd=tmp_path)["modules"]) & set(HEAVY)


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["build", "--help"]])
def test_help_loads_nothing_heavy(argv, tmp_path):
    result = probe("trtplug.__main__", *argv, cwd=tmp_path)
    assert result["status"] == 0
    assert result["out"].strip()
    assert not set(result["modules"]) & set(HEAVY)


def test_the_probe_sees_what_is_loaded(tmp_path):
    """Else the tests above would hold of anything."""
    assert "json" in probe("json.tool", "--help", cwd=tmp_path)["modules"]
