"""CUDA's own programs: where they are, and their answers.

They come in wheels of NVIDIA's (`nvidia/cu13/bin` among the packages) or with a CUDA toolkit.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from trtplug.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trtplug.target import Sm

PACKAGES = {
    "nvdisasm": "nvidia-cuda-nvdisasm",
}
"""Program -> the wheel that brings it."""

_LIMIT_S = 120.0
_ADDRESS = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/")


def find_tool(name: str) -> Path | None:
    """A program of CUDA's: from its wheel, else from PATH, else None."""
    for folder in _wheel_folders():
        for found in sorted(folder.glob(f"*/bin/{name}")):
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None


def _wheel_folders() -> tuple[Path, ...]:
    spec = importlib.util.find_spec("nvidia")
    return tuple(map(Path, spec.submodule_search_locations or ())) if spec else ()


def disassemble(codes: Sequence[bytes], sm: Sm) -> tuple[str, ...]:
    """Machine code as text, one line an instruction, branches to addresses.

    All of it goes through one call: nvdisasm takes a third of a second to start, and a few
    milliseconds for a kernel. Addresses count from the first code on through all.

    Args:
        codes: instructions of kernels, as `code_of` gives them.
        sm: what they were made for.

    Raises:
        ToolMissingError: nvdisasm is not installed.
        ValueError: nvdisasm does not take the code, or takes longer than two minutes.
    """
    with tempfile.TemporaryDirectory(prefix="trtplug-") as folder:
        file = Path(folder) / "code.bin"
        file.write_bytes(b"".join(codes))
        done = _run("nvdisasm", "--binary", f"SM{sm.number}", str(file))
    if done.returncode:
        raise ValueError(f"nvdisasm: {done.stderr.strip()}")
    return _parts(done.stdout, codes)


def _parts(text: str, codes: Sequence[bytes]) -> tuple[str, ...]:
    """The lines of each code."""
    ends = list(itertools.accumulate(len(code) for code in codes))
    parts: list[list[str]] = [[] for _ in codes]
    place = 0
    for line in text.splitlines():
        found = _ADDRESS.match(line)
        if found is None:
            continue
        while place < len(ends) and int(found[1], 16) >= ends[place]:
            place += 1
        if place == len(ends):
            raise ValueError(f"nvdisasm: an instruction beyond the end: {line.strip()}")
        parts[place].append(line)
    return tuple("\n".join(lines) for lines in parts)


def _run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    tool = find_tool(name)
    if tool is None:
        raise ToolMissingError(tool=name, package=PACKAGES[name])
    try:
        return subprocess.run(
            [tool, *arguments], capture_output=True, text=True, timeout=_LIMIT_S, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"{name} took longer than {_LIMIT_S:g} s") from error
