from __future__ import annotations

from tests.backends.double import DoubleBackend
from tests.backends.test_cache_api import Caching
from trtplug.backends import find
from trtplug.backends.gpu import Gpu, GpuSearch
from trtplug.backends.machine import read_machine
from trtplug.target import Sm

SEARCH = GpuSearch(gpus=(Gpu(name="NVIDIA H200", sm=Sm(90)),), driver="13.0", problem="")


def test_driver_and_cuda_are_two_things(tmp_path):
    (tmp_path / "version").write_text("580.95.05\n")
    machine = read_machine(SEARCH, tmp_path / "version")
    assert (machine.driver, machine.cuda) == ("580.95.05", "13.0")
    assert machine.gpus == SEARCH.gpus


def test_what_cannot_be_read_is_unknown(tmp_path):
    assert read_machine(SEARCH, tmp_path / "absent").driver is None
    (tmp_path / "odd").write_bytes(b"\xff\xfe")
    assert read_machine(SEARCH, tmp_path / "odd").driver is None
    (tmp_path / "empty").write_text("\n")
    assert read_machine(SEARCH, tmp_path / "empty").driver is None


def test_the_builder_is_the_one_that_has_timing_caches(monkeypatch):
    assert read_machine(SEARCH).tensorrt is None
    monkeypatch.setattr(find, "BACKENDS", (DoubleBackend(), Caching()))
    assert read_machine(SEARCH).tensorrt == "1.7.1.116"


def test_looks_at_the_real_machine_without_raising():
    machine = read_machine()
    assert bool(machine.gpus) != bool(machine.gpu_problem)
