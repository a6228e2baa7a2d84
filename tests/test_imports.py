"""What trtplug imports: nothing heavy before it is needed, and nothing that it does not declare."""

import ast
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.every import check_every

REPO = Path(__file__).resolve().parent.parent

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
import contextlib, io, json, os, runpy, sys
os._exit = sys.exit  # the answer below is still to be told
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
    assert set(probe("trtplug", cwd=tmp_path)["modules"]) & set(HEAVY) == set()


@pytest.mark.parametrize(
    "argv", [("--help",), ("--version",), ("build", "--help"), ("kernels", "--help")]
)
def test_help_loads_nothing_heavy(argv, tmp_path):
    result = probe("trtplug.__main__", *argv, cwd=tmp_path)
    assert result["status"] == 0
    assert result["out"].strip()
    assert set(result["modules"]) & set(HEAVY) == set()


def test_the_probe_sees_what_is_loaded(tmp_path):
    """Else the tests above would hold of anything."""
    assert "json" in probe("json.tool", "--help", cwd=tmp_path)["modules"]


def third_party_imports(source):
    """Top-level names of the packages that Python source imports, standard library left out."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {n.split(".")[0] for n in names} - sys.stdlib_module_names - {"trtplug", "tomllib"}


@pytest.fixture(scope="module")
def distributions():
    """Which distributions hold each top-level package."""
    # Python 3.10 finds no owner for a wheel without top_level.txt, as protobuf's is.
    return {"google": ["protobuf"], **importlib.metadata.packages_distributions()}


@pytest.fixture(scope="module")
def declared():
    """Normal names of all distributions that trtplug, or an extra that users may want, asks for."""
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        import tomli as tomllib
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {k: v for k, v in project["optional-dependencies"].items() if k != "test"}
    wanted = [*project["dependencies"], *(w for extra in extras.values() for w in extra)]
    return {re.match(r"[\w.-]+", w).group().lower().replace("_", "-") for w in wanted}


def test_what_is_imported_is_declared(distributions, declared):
    """The test environment holds more than a user's does, so a missing name shows up only there."""

    def check(path):
        for name in third_party_imports(path.read_text(encoding="utf-8")):
            owners = {d.lower().replace("_", "-") for d in distributions.get(name, [name])}
            assert owners & declared, f"{name} is in none of pyproject's dependencies"

    check_every((REPO / "trtplug").rglob("*.py"), check)
