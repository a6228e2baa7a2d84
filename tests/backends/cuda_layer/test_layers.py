"""The CUDA layer on a double, and which package is taken."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doubles.site import install, make_site
from trtplug.backends.cuda_layer import find
from trtplug.backends.cuda_layer.find import layer_package, open_layer
from trtplug.errors import BackendMissingError

_BEHAVIOUR = Path(__file__).with_name("behaviour.py")


def run(site) -> dict:
    done = subprocess.run(
        [sys.executable, str(_BEHAVIOUR)],
        env=site.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(seen: dict, package: str) -> None:
    assert seen["found"][0] == package
    assert seen["layer"] == {"pycuda": "PycudaLayer", "cuda-core": "CoreLayer"}[package]
    assert (seen["name"], seen["cc"]) == ("NVIDIA Double 9000", [9, 0])
    assert seen["handle"] > 0
    assert seen["address"] > 0
    assert (seen["data"], seen["empty"]) == ("12345", "")
    assert seen["ms"] > 0
    launched = ["k", [2, 3, 4], [32, 1, 1], 16, [2**40, 5]]
    if package == "pycuda":
        # It waits for the whole context: it cannot name the stream.
        assert seen["launches"] == [["synchronize"], [*launched, None], ["synchronize"]]
    else:
        assert seen["launches"] == [[*launched, 77]]


def test_pycuda(tmp_path: Path):
    check(run(make_site(tmp_path)), "pycuda")


def test_cuda_core(tmp_path: Path):
    site = make_site(tmp_path, cuda_package=None)
    (site.folder / "cuda").mkdir()
    shutil.copytree(
        Path(__file__).resolve().parents[2] / "doubles/cuda_core", site.folder / "cuda/core"
    )
    install(site.folder, "cuda-core", "1.2.2")
    check(run(site), "cuda-core")


def test_pycuda_is_taken_first(tmp_path: Path):
    site = make_site(tmp_path)
    install(site.folder, "cuda-core", "1.2.2")
    check(run(site), "pycuda")


def test_neither_is_an_error_that_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(find, "installed_version", lambda name: None)
    assert layer_package() is None
    with pytest.raises(BackendMissingError) as caught:
        open_layer()
    assert "pip install pycuda" in caught.value.hint
    assert "cuda-core" in caught.value.hint
