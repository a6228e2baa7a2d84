"""The local GPU, through a driver library that shows one."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.doubles.libcuda import write_libcuda
from tests.doubles.shared_library import write_library

if TYPE_CHECKING:
    from pathlib import Path

ASK = (
    "import json; from dataclasses import asdict; from trtplug.backends.gpu import find_gpus;"
    "print(json.dumps(asdict(find_gpus())))"
)
ERROR_100 = bytes.fromhex("b864000000c3")


def found(folder: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        env={"LD_LIBRARY_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, object] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("sm", [75, 90, 120])
def test_name_sm_uuid_and_driver(tmp_path: Path, sm: int):
    write_libcuda(tmp_path, name="NVIDIA A long name of a GPU", sm=sm, cuda=12040)
    said = found(tmp_path)
    assert (said["driver"], said["problem"]) == ("12.4", "")
    assert said["gpus"] == [
        {
            "name": "NVIDIA A long name of a GPU",
            "sm": {"number": sm},
            "uuid": b"double-gpu-00001".hex(),
        }
    ]


def test_driver_that_does_not_start_says_its_error(tmp_path: Path):
    zero = bytes.fromhex("31c0c3")
    write_library(tmp_path / "libcuda.so.1", {"cuInit": ERROR_100, "cuDriverGetVersion": zero})
    said = found(tmp_path)
    assert said["gpus"] == []
    assert "cuInit gave error 100" in str(said["problem"])
