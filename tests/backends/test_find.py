"""Choosing a backend, and the local GPU."""

from __future__ import annotations

import pytest

from trtplug.backends import find, gpu
from trtplug.backends.find import choose_backend, local_sm
from trtplug.backends.gpu import Gpu, GpuSearch
from trtplug.backends.rtx import backend as rtx
from trtplug.errors import MACHINE_LACKS, BackendMissingError, GpuMissingError, UsageError
from trtplug.target import Sm


@pytest.mark.rtx
@pytest.mark.parametrize(("name", "chosen"), [("auto", "rtx"), ("rtx", "rtx"), ("null", "null")])
def test_by_name(name: str, chosen: str):
    assert choose_backend(name).name == chosen


def test_unknown_name_lists_the_backends():
    with pytest.raises(UsageError, match="unknown backend 'tvm'") as caught:
        choose_backend("tvm")
    assert caught.value.hint == "the backends are auto, trt, rtx, null"


@pytest.mark.parametrize("name", ["auto", "rtx"])
def test_not_installed_says_how_to_get_it_and_auto_never_takes_null(monkeypatch, name: str):
    monkeypatch.setattr(rtx, "installed_version", lambda *names: None)
    with pytest.raises(BackendMissingError) as caught:
        choose_backend(name)
    assert caught.value.exit_status == MACHINE_LACKS
    assert "pip install tensorrt-rtx-cu13" in caught.value.hint


def test_local_is_the_first_gpu_or_an_error_with_the_reason(monkeypatch: pytest.MonkeyPatch):
    two = (Gpu(name="A", sm=Sm(90)), Gpu(name="B", sm=Sm(89)))
    monkeypatch.setattr(gpu, "find_gpus", lambda: GpuSearch(gpus=two, driver="13.0", problem=""))
    assert local_sm() == Sm(90)
    none = GpuSearch(gpus=(), driver=None, problem="no CUDA driver")
    monkeypatch.setattr(gpu, "find_gpus", lambda: none)
    with pytest.raises(GpuMissingError, match="no GPU to build for: no CUDA driver"):
        local_sm()


def test_backends_have_names_of_their_own():
    names = [b.name for b in find.BACKENDS]
    assert len(set(names)) == len(names)
