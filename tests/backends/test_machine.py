from __future__ import annotations

from tests.backends.double import DoubleBackend
from tests.backends.test_cache_api import Caching
from tests.doubles.libcuda import write_nvml
from tests.doubles.shared_library import RETURN_ZERO, write_library
from trtplug.backends import find
from trtplug.backends import gpu as machine_module
from trtplug.backends.find import read_machine
from trtplug.backends.gpu import Gpu, GpuSearch, driver_version
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


def test_the_driver_is_asked_through_nvml_first(tmp_path, monkeypatch):
    file = tmp_path / "version"
    file.write_text("1.0\n")
    monkeypatch.setattr(machine_module, "_DRIVER_VERSION", file)
    monkeypatch.setattr(machine_module, "_NVML", str(write_nvml(tmp_path, driver="570.86.15")))
    assert driver_version() == "570.86.15"


def test_where_nvml_is_absent_or_fails_the_modules_file_tells(tmp_path, monkeypatch):
    file = tmp_path / "version"
    file.write_text("1.0\n")
    monkeypatch.setattr(machine_module, "_DRIVER_VERSION", file)
    monkeypatch.setattr(machine_module, "_NVML", str(tmp_path / "absent.so"))
    assert driver_version() == "1.0"
    fails = bytes.fromhex("b812000000c3")  # mov eax, 18; ret: library and driver do not match
    names = ("nvmlSystemGetDriverVersion", "nvmlShutdown")
    broken = write_library(
        tmp_path / "broken.so", {"nvmlInit_v2": fails, **dict.fromkeys(names, RETURN_ZERO)}
    )
    monkeypatch.setattr(machine_module, "_NVML", str(broken))
    assert driver_version() == "1.0"
    file.unlink()
    assert driver_version() is None
