"""CUDA C++ of the tests to PTX. The emulator knows no compiler; its tests need one."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from trtplug.emulator.parse import parse_module

if TYPE_CHECKING:
    from trtplug.emulator.ptx import Module


@functools.cache
def compile_ptx(source: str, defines: tuple[str, ...] = (), sm: str = "sm_80") -> str:
    from cuda.bindings import nvrtc

    options = [f"--gpu-architecture={sm.replace('sm', 'compute')}", "--std=c++17"]
    given = [o.encode() for o in (*options, *(f"-D{d}" for d in defines))]
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"test.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, len(given), given)
    if int(status):
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise AssertionError(log.decode())
    _, size = nvrtc.nvrtcGetPTXSize(program)
    text = b" " * size
    nvrtc.nvrtcGetPTX(program, text)
    return text.rstrip(b"\0").decode()


def compile_module(source: str, *defines: str, sm: str = "sm_80") -> Module:
    return parse_module(compile_ptx(source, defines, sm))
