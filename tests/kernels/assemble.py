"""PTX through ptxas."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from trtplug.kernels.loop import find_tool


def assemble_ptx(ptx: str, sm: str) -> str:
    """What ptxas has against a PTX text; empty where it assembles it for `sm`."""
    tool = find_tool("ptxas")
    assert tool is not None, "ptxas is missing: the extra `test` brings nvidia-cuda-nvcc"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_text(ptx, encoding="utf-8")
        done = subprocess.run(
            [tool, f"-arch={sm}", str(file), "-o", str(file.with_suffix(".cubin"))],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    return (done.stderr + done.stdout).strip() if done.returncode else ""
