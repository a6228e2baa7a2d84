"""The Python interface: its examples, its errors, and that it loads nothing early."""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import trtplug
from tests.cli_runner import run_here
from tests.models import conv_relu, save
from trtplug import api
from trtplug.errors import (
    DocumentError,
    OutputInTheWayError,
    ShapeError,
    TrtplugError,
    UnknownTargetError,
    UsageError,
)

PAGE = Path(__file__).resolve().parent.parent / "docs" / "python.md"
FUNCTIONS = [name for name in trtplug.__all__ if not name.startswith("_")]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with `model.onnx`: one convolution and a Relu, `x` is [n, 3, h, w]."""
    save(conv_relu(shape=("n", 3, "h", "w")), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle of one engine, and its model beside it."""
    root = tmp_path_factory.mktemp("bundle")
    save(conv_relu(), root / "small.onnx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRTPLUG_STORE", str(root / "store"))
        trtplug.build(root / "small.onnx", targets="sm_89", out=root / "out")
    return root / "out"


def in_new_python(code, cwd):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.rtx
def test_the_examples_in_docstrings_run(folder):
    finder = doctest.DocTestFinder(recurse=False)
    # In this order: the loaders read what `build` has written.
    names = sorted(FUNCTIONS, key=lambda name: (name.startswith("load_"), name))
    for name in names:
        (test,) = finder.find(getattr(trtplug, name), name, globs={"trtplug": trtplug})
        assert test.examples, f"{name} has no example"
        words = io.StringIO()
        assert doctest.DocTestRunner().run(test, out=words.write).failed == 0, words.getvalue()


def blocks():
    """Each Python block of the page, with the output that stands behind it; empty where none."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```\n(?:\n```\n(.*?)```)?", text, re.DOTALL)


@pytest.mark.rtx
def test_the_examples_of_the_page_run(folder):
    names = {}
    assert len(blocks()) > 5
    for code, wanted in blocks():
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == wanted, code


def test_the_page_lists_every_function():
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `trtplug\.(\w+)\(", text, re.MULTILINE)) == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_says_what_it_takes_returns_and_raises(name):
    text = getattr(trtplug, name).__doc__
    for heading in ("Args:", "Returns:", "Raises:", "Example:"):
        assert heading in text


def test_errors_in_docstrings_exist():
    from trtplug import errors

    for name in FUNCTIONS:
        raises = getattr(trtplug, name).__doc__.split("Raises:")[1].split("Example:")[0]
        for error in re.findall(r"^ +(\w+Error):", raises, re.MULTILINE):
            assert issubclass(getattr(errors, error), TrtplugError)


def test_naming_a_function_loads_nothing_heavy(tmp_path):
    heavy = {"numpy", "onnx", "pydantic", "click", "rich", "jinja2", "tensorrt_rtx"}

    def loaded(code):
        return heavy & set(in_new_python(f"import sys, trtplug; {code}; print(*sys.modules)", cwd))

    cwd = tmp_path
    assert loaded("trtplug.__version__") == set()
    assert loaded("; ".join(f"trtplug.{name}.__doc__" for name in FUNCTIONS)) == set()
    assert loaded("import onnx") == {"numpy", "onnx"}


@pytest.mark.parametrize(
    "first", ["trtplug.build", "trtplug.rewrite", "trtplug.build.run", "trtplug.rewrite.run"]
)
def test_folders_of_the_same_name_do_not_hide_functions(first, tmp_path):
    code = f"import {first}, trtplug; print(trtplug.build.__name__, trtplug.rewrite.__module__)"
    assert in_new_python(code, tmp_path) == ["build", "trtplug.api"]
    assert in_new_python(f"from trtplug import build; {code}", tmp_path)[0] == "build"


def test_type_checkers_see_the_functions(tmp_path):
    (tmp_path / "user.py").write_text(
        "import trtplug\n"
        "def layers(path: str) -> int:\n"
        "    built = trtplug.build(path, targets=['sm_89'], shapes={'x': (1, 3, 32, 32)})\n"
        "    return len(built.reports['a'].layers) + len(trtplug.sites(path).sites)\n"
        "reveal_type(trtplug.load_lock('out').engine.sha256)\n"
        "trtplug.build(1)\n"
    )
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = true\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "user.py"],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(PAGE.parent.parent),
            "PATH": "",
            "MYPYPATH": str(PAGE.parent.parent),
        },
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert 'Revealed type is "builtins.str"' in done.stdout or 'is "str"' in done.stdout
    assert re.findall(r"^user.py:(\d+): error", done.stdout, re.MULTILINE) == ["6"], done.stdout


def test_what_there_is_not_is_an_attribute_error():
    assert set(trtplug.__all__) <= set(dir(trtplug))
    with pytest.raises(AttributeError, match="has no attribute 'tune'"):
        trtplug.tune  # noqa: B018


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"targets": "sm_89", "shapes": {"x": "1xa"}}, UsageError, "is no shape"),
        ({"targets": "sm_89", "shapes": ["1x3"]}, UsageError, "names no input"),
        ({"targets": "sm_89", "shapes": {"x": (1, -3, 4, 4)}}, UsageError, "is no shape"),
        ({"targets": "sm_89", "precision": "int8"}, UsageError, "unknown --precision 'int8'"),
        ({"targets": "sm_89", "io_precision": "no"}, UsageError, "unknown --io-precision"),
        ({"targets": "sm_89", "keep_fp32": [""]}, UsageError, "keep_fp32 has ''"),
        ({"targets": [3]}, UsageError, "targets has 3"),
        ({"targets": "sm_89", "out": ""}, UsageError, "a path is empty"),
        ({"targets": "sm_89", "out": "a\0"}, UsageError, "null byte"),
        ({"targets": "sm_89", "jobs": 0}, UsageError, "jobs 0 is not in the range"),
        ({"targets": "sm_89", "repeat": 1001}, UsageError, "repeat 1001"),
        ({"targets": "sm_89", "timeout_s": float("nan")}, UsageError, "timeout_s nan"),
        ({"targets": "sm_89", "memory_limit_bytes": 0}, UsageError, "memory_limit_bytes 0"),
        ({"targets": "rtx9999"}, UnknownTargetError, "rtx9999"),
        ({"targets": "sm_89"}, ShapeError, "no shape"),
        ({"targets": "sm_89", "out": "."}, OutputInTheWayError, "will not be replaced"),
    ],
)
def test_wrong_arguments_of_a_build(folder, given, error, words):
    with pytest.raises(error, match=re.escape(words)):
        trtplug.build("model.onnx", **given)
    assert [p.name for p in folder.iterdir()] == ["model.onnx"]


def test_sites_and_the_command_line_agree(folder):
    ran = run_here("sites", "model.onnx", "--shape", "x=1x3x32x32", "--format", "json")
    stated = json.loads(ran.out)
    for shapes in ({"x": "1x3x32x32"}, {"x": [1, 3, 32, 32]}, ["x=1x3x32x32"], "x=1x3x32x32"):
        listing = trtplug.sites("model.onnx", shapes=shapes)
        assert listing.sites[0].flops == stated["sites"][0]["flops"]
    assert trtplug.sites(folder / "model.onnx").sites[0].flops is None


def test_rewrite_and_the_command_line_agree(folder):
    command = ("rewrite", "model.onnx", "-o", "a.onnx", "--precision", "fp16", "--format", "json")
    ran = run_here(*command, "--check", "--shape", "x=1x3x32x32")
    assert ran.status == 0
    stated = json.loads(ran.out)
    assert stated["schema"] == "trtplug.rewrite/1"
    result = trtplug.rewrite(
        "model.onnx", "b.onnx", precision="fp16", check=True, shapes={"x": "1x3x32x32"}
    )
    assert stated["sites"] == list(result.sites) == ["conv0"]
    assert stated["check"]["cosine"] == result.check.cosine
    assert result.converted > 0
    made = onnx.load("b.onnx")
    assert [n.op_type for n in made.graph.node].count("CBR") == 1


def test_rewrite_refuses_what_the_command_line_refuses(folder):
    for given, words in (
        ({"pairs": True, "sites": False}, "means nothing with --no-sites"),
        ({"keep_fp32": "*"}, "mean nothing with --precision keep"),
        ({"precision": "fp16", "keep_fp32": "zzz"}, "matches no node"),
        ({"output": "model.onnx"}, "the model itself"),
    ):
        with pytest.raises(UsageError, match=words):
            trtplug.rewrite("model.onnx", **{"output": "out.onnx", **given})
    with pytest.raises(ShapeError, match="no shape"):
        trtplug.rewrite("model.onnx", "out.onnx", check=True)
    assert [p.name for p in folder.iterdir()] == ["model.onnx"]


@pytest.mark.rtx
def test_a_build_reports_its_progress_and_takes_reports_from_the_store(folder):
    steps = []
    first = trtplug.build("model.onnx", targets=["sm_89"], shapes={"x": (1, 3, 8, 8)}, out="one",
                          progress=steps.append)  # fmt: skip
    assert {s.target for s in steps} == {"rtx-1.7:sm_89"}
    assert {"phase", "step", "end"} <= {s.event for s in steps}
    assert steps[-1].event == "built"
    phase = next(s for s in steps if s.event == "phase")
    assert phase.name
    assert phase.total >= 1
    steps.clear()
    second = trtplug.build("model.onnx", targets=["sm_89"], shapes={"x": (1, 3, 8, 8)}, out="two",
                           progress=steps.append)  # fmt: skip
    assert [s.event for s in steps] == ["from_store"]
    assert second.manifest.targets[0].from_store
    assert second.reports["rtx-1.7:sm_89"].layers == first.reports["rtx-1.7:sm_89"].layers


@pytest.mark.rtx
def test_what_progress_raises_ends_the_build(folder):
    def stop(step):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        trtplug.build("model.onnx", targets="sm_89", shapes={"x": (1, 3, 8, 8)}, progress=stop)
    assert [p.name for p in folder.iterdir()] == ["model.onnx"]


@pytest.mark.rtx
def test_inspect_gives_a_value_by_the_kind_of_file(bundle, tmp_path):
    (engine,) = bundle.glob("sm_89/*.engine")
    kinds = {
        bundle.parent / "small.onnx": "ModelSummary",
        bundle: "Manifest",
        bundle / "manifest.json": "Manifest",
        bundle / "sm_89/report.json": "Report",
        bundle / "sm_89/lock.json": "Lock",
        engine: "EngineFile",
    }
    for path, kind in kinds.items():
        assert type(trtplug.inspect(path)).__name__ == kind
        assert type(trtplug.inspect(str(path))).__name__ == kind
    assert trtplug.inspect(engine).manifest.sm == "sm_89"
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DocumentError, match="its schema is"):
        trtplug.inspect(tmp_path / "x.json")


@pytest.mark.rtx
def test_loaders_take_a_file_or_the_folder_around_it(bundle):
    for load, name in ((trtplug.load_report, "report.json"), (trtplug.load_lock, "lock.json")):
        file = bundle / "sm_89" / name
        assert load(file) == load(file.parent) == load(bundle) == trtplug.inspect(file)
        with pytest.raises(DocumentError):
            load(bundle / "manifest.json")
        with pytest.raises(DocumentError):
            load(bundle.parent)
    assert trtplug.load_manifest(bundle) == trtplug.load_manifest(bundle / "manifest.json")


@pytest.mark.rtx
def test_a_bundle_of_several_targets_wants_a_name(bundle, tmp_path):
    document = json.loads((bundle / "manifest.json").read_text())
    document["targets"].append({**document["targets"][0], "sm": "sm_75"})
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"2 of report\.json") as caught:
        trtplug.load_report(tmp_path)
    assert "sm_89/report.json or sm_75/report.json" in caught.value.hint
    assert api.load_manifest(tmp_path).targets[1].sm == "sm_75"
