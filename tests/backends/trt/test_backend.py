"""The backend as its parent sees it: what is missing, and what its child receives."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from trtplug.backends import find, gpu
from trtplug.backends.cuda_layer import find as layer_find
from trtplug.backends.find import choose_backend
from trtplug.backends.gpu import Gpu, GpuSearch
from trtplug.backends.trt import backend as trt
from trtplug.backends.trt.backend import TrtBackend
from trtplug.errors import BackendMissingError
from trtplug.target import Sm

if TYPE_CHECKING:
    from pathlib import Path

H200 = GpuSearch(gpus=(Gpu(name="H200", sm=Sm(90), uuid="ab"),), driver="13.0", problem="")
NO_GPU = GpuSearch(gpus=(), driver=None, problem="no CUDA driver is installed")


@pytest.fixture(autouse=True)
def plugin_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """`tensorrt_bindings/plugin`, found first on the path."""
    folder = tmp_path / "tensorrt_bindings" / "plugin"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def machine(
    monkeypatch: pytest.MonkeyPatch, version: str | None, cuda: str | None, search: GpuSearch
) -> None:
    def found(*names: str) -> str | None:
        if "tensorrt" in names:
            return version
        return "1.0" if cuda in names else None

    monkeypatch.setattr(trt, "installed_version", found)
    monkeypatch.setattr(layer_find, "installed_version", found)
    monkeypatch.setattr(gpu, "find_gpus", lambda: search)


def test_with_all_that_it_needs_it_builds_for_the_gpu_at_hand(monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, "11.4.0.106", "pycuda", H200)
    backend = TrtBackend()
    able = backend.capabilities()
    assert able.sms == (Sm(90),)
    assert able.needs_gpu
    assert able.plugins
    assert able.timing_cache
    assert not able.reproducible
    assert backend.problem() == ""
    assert backend.device_fingerprint().startswith("H200, driver ")
    assert choose_backend("auto").name == "trt"


def test_without_the_plugin_package_it_takes_no_plugins(
    monkeypatch: pytest.MonkeyPatch, plugin_package: Path
):
    (plugin_package / "__init__.py").unlink()
    machine(monkeypatch, "11.4.0.106", "pycuda", H200)
    able = TrtBackend().capabilities()
    assert not able.plugins
    assert "tensorrt.plugin" in able.how_to_get_plugins
    machine(monkeypatch, None, "pycuda", H200)
    assert TrtBackend().capabilities().plugins


@pytest.mark.parametrize(
    ("version", "cuda", "search", "problem", "advice"),
    [
        (None, "pycuda", H200, "it is not installed", "pip install 'tensorrt>=10.9'"),
        ("10.8.0.43", "pycuda", H200, "TensorRT 10.8.0.43 is older than 10.9", "tensorrt>=10.9"),
        ("11.4.0.106", None, H200, "neither pycuda nor cuda-core", "pip install pycuda"),
        ("11.4.0.106", "cuda-core", NO_GPU, "no CUDA driver", "--backend rtx"),
    ],
)
def test_what_is_missing_is_said_and_how_to_get_it(
    monkeypatch, version, cuda, search, problem, advice
):
    machine(monkeypatch, version, cuda, search)
    assert TrtBackend().capabilities().sms == ()
    with pytest.raises(BackendMissingError) as caught:
        choose_backend("trt")
    assert problem in caught.value.message
    assert advice in caught.value.hint


def test_auto_takes_rtx_for_what_the_gpu_at_hand_cannot_serve(monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, "11.4.0.106", "pycuda", H200)
    if not find.RtxBackend().capabilities().sms:
        pytest.skip("tensorrt-rtx is not installed here")

    def serves(sms: set[Sm]):
        return lambda backend: sms <= set(backend.capabilities().sms)

    assert choose_backend("auto", serves({Sm(90)})).name == "trt"
    assert choose_backend("auto", serves({Sm(89)})).name == "rtx"
    # Where none serves all of it, the first says so for each target.
    assert choose_backend("auto", serves({Sm(89), Sm(90)})).name == "trt"


def test_asking_loads_neither_tensorrt_nor_cuda():
    code = (
        "import sys; from trtplug.backends.trt.backend import TrtBackend as B; b = B();"
        "b.version(), b.capabilities(), b.child_command(), b.how_to_get(), b.device_fingerprint();"
        "sys.exit(bool({'tensorrt', 'pycuda', 'cuda'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_its_child_sees_the_same_first_gpu():
    assert "CUDA_VISIBLE_DEVICES" in TrtBackend().passed_on()
