"""CUDA's own programs: where they are, and their answers.

They come in wheels of NVIDIA's (`nvidia/cu13/bin` among the packages) or with a CUDA toolkit.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

from trtplug.errors import ToolMissingError

PACKAGES = {
    "nvdisasm": "nvidia-cuda-nvdisasm",
    "ptxas": "nvidia-cuda-nvcc",
}
"""Program -> the wheel that brings it."""

_LIMIT_S = 120.0


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


def disassemble(cubin: bytes) -> str:
    """The machine code of a cubin as text, labels in it.

    Raises:
        ToolMissingError: nvdisasm is not installed.
        ValueError: nvdisasm does not take the file, or takes longer than two minutes.
    """
    with tempfile.TemporaryDirectory(prefix="trtplug-") as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        done = _run("nvdisasm", "-c", str(file))
    if done.returncode:
        raise ValueError(f"nvdisasm: {done.stderr.strip()}")
    return done.stdout


def assemble_ptx(ptx: str, sm: str) -> str:
    """What ptxas has against a PTX text; empty where it assembles it for `sm`.

    Raises:
        ToolMissingError: ptxas is not installed.
    """
    with tempfile.TemporaryDirectory(prefix="trtplug-") as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx, encoding="utf-8")
        done = _run("ptxas", f"-arch={sm}", str(file), "-o", str(file.with_suffix(".cubin")))
    return (done.stderr + done.stdout).strip() if done.returncode else ""


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
