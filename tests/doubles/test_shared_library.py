"""Libraries written without a compiler load, export what they say, and run."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.doubles.shared_library import RETURN_ZERO, write_library

if TYPE_CHECKING:
    from pathlib import Path

RETURN_42 = bytes.fromhex("b82a000000c3")


@pytest.mark.parametrize("count", [1, 2, 40])
def test_functions_are_found_by_name_and_run(tmp_path: Path, count: int):
    names = {f"f{i}": bytes((0xB8, i, 0, 0, 0, 0xC3)) for i in range(count)}
    library = ctypes.CDLL(str(write_library(tmp_path / "libx.so.1", names)))
    assert [getattr(library, name)() for name in names] == list(range(count))
    with pytest.raises(AttributeError):
        _ = library.missing


def test_it_is_found_by_its_soname(tmp_path: Path):
    write_library(tmp_path / "libx.so.7", {"f": RETURN_42, "g": RETURN_ZERO})
    code = "import ctypes; x = ctypes.CDLL('libx.so.7'); print(x.f(), x.g())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "42 0\n"
