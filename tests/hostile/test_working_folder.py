"""Python files in the working folder, as in a cloned model repository, are never run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runner import Ran
from tests.doubles.site import Site, make_site
from tests.models import conv_chain, save

REPO = Path(__file__).resolve().parents[2]
NAMES = (
    "base64", "ctypes", "encodings", "gc", "hashlib", "json", "logging", "numpy", "onnx", "os",
    "resource", "runpy", "sitecustomize", "tensorrt", "tensorrt_rtx", "trtplug", "types",
    "usercustomize",
)  # fmt: skip


def poison(folder: Path) -> None:
    """Modules that leave a trace when they run."""
    for name in NAMES:
        trace = f"open({str(folder / 'RAN')!r}, 'a').write({name + chr(10)!r})\n"
        (folder / f"{name}.py").write_text(trace)


def run(folder: Path, environ: dict[str, str], *arguments: str) -> Ran:
    """The command as it is installed, in a poisoned folder."""
    poison(folder)
    trtplug = Path(sys.executable).with_name("trtplug")
    done = subprocess.run(
        [trtplug, *arguments], cwd=folder, env=environ, capture_output=True, text=True, timeout=120
    )
    assert not (folder / "RAN").exists(), (folder / "RAN").read_text()
    return Ran(status=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.rtx
def test_a_build_with_rtx(tmp_path: Path):
    save(conv_chain(2), tmp_path / "m.onnx")
    ran = run(tmp_path, {**os.environ}, "build", "m.onnx", "--target", "sm_89")
    assert ran.status == 0, ran.err


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = make_site(tmp_path)
    save(conv_chain(2), made.work / "m.onnx")
    return made


@pytest.mark.parametrize("python_path", ["{}", ":{}", "{}:", "{}::"])
def test_a_build_with_tensorrt_its_trial_run_and_its_cache(site: Site, python_path: str):
    environ = {**site.environ, "PYTHONPATH": str(site.folder)}
    built = run(site.work, environ, "build", "m.onnx", "--backend", "trt", "--target", "local")
    assert built.status == 0, built.err
    # Only the children can be held to this: with an empty entry Python itself looks here first.
    code = f"""
import os, sys
sys.path.remove("")
os.chdir({str(site.work)!r})
os.environ["PYTHONPATH"] = {python_path.format(site.folder)!r}
from trtplug.cli.main import main
sys.exit(main(["cache", "verify", "--load"]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "1, 0 damaged" in done.stdout
    assert not (site.work / "RAN").exists(), (site.work / "RAN").read_text()


def test_the_scripts_that_set_up(tmp_path: Path):
    poison(tmp_path)
    (tmp_path / "venv.py").write_text((tmp_path / "json.py").read_text())
    (tmp_path / "pip.py").write_text((tmp_path / "json.py").read_text())
    checkout = tmp_path / "checkout"
    (checkout / "scripts").mkdir(parents=True)
    shutil.copy(REPO / "scripts" / "setup.sh", checkout / "scripts")
    shutil.copy(REPO / "pyproject.toml", checkout)
    steps = 'python="$(find_python)"; _is_whole ./none; _digest "$python" x'
    program = f'. "{checkout}/scripts/setup.sh"; {steps}'
    subprocess.run(
        [str(shutil.which("bash")), "-c", program, "scripts/demo"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        timeout=60,
    )
    assert not (tmp_path / "RAN").exists(), (tmp_path / "RAN").read_text()
