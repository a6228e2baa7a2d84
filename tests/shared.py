"""What all processes of a run of the tests share: a folder, and what NVRTC answered."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from trtplug.kernels import nvrtc
from trtplug.store import key_of

if TYPE_CHECKING:
    import pytest

    from trtplug.kernels.source import KernelSource
    from trtplug.target import Sm

ANSWERS = "TESTS_NVRTC_ANSWERS"
"""Environment variable: the folder of what NVRTC answered in this run."""


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder that all workers of this run share."""
    base = factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / name
    shared.mkdir(exist_ok=True)
    return shared


def compile_once() -> None:
    """From now on this process takes from the folder what NVRTC answered to any of them.

    Kernels are compiled with no store or an empty one in most tests, many of them the same.
    """
    folder = Path(os.environ[ANSWERS])
    compile_source = nvrtc.compile_source

    def compiled(source: KernelSource, sm: Sm, *defines: str) -> nvrtc.Compiled:
        asked = [source.digest, str(sm), *defines, *nvrtc.OPTIONS, nvrtc.version()]
        file = folder / key_of({"asked": asked})
        with filelock.FileLock(f"{file}.lock"):
            if not file.exists():
                answer = compile_source(source, sm, *defines)
                data = pickle.dumps([getattr(answer, n) for n in ("ptx", "cubin", "log")])
                partial = file.with_suffix(".partial")
                partial.write_bytes(data)
                partial.rename(file)
        ptx, cubin, log = pickle.loads(file.read_bytes())  # noqa: S301
        return nvrtc.Compiled(ptx=ptx, cubin=cubin, log=log)

    nvrtc.compile_source = compiled
