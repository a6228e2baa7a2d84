"""The one module that knows `cuda.bindings`: CUDA C++ to PTX and machine code by NVRTC, no driver.

NVRTC compiles for one SM and gives both at once. Many threads may call it at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtplug.errors import CompilerMissingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trtplug.kernels.source import KernelSource
    from trtplug.target import Sm

OPTIONS = ("--std=c++17", "--ptxas-options=-v")
"""Beside the architecture; the assembler's report of registers and spills comes in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What NVRTC made of a source."""

    ptx: str | None
    """None where it refused the source; the log says why."""
    cubin: bytes | None
    log: str


def version() -> str:
    """NVRTC's own, such as `13.5`.

    Raises:
        CompilerMissingError: `cuda.bindings` or NVRTC's library is not installed.
    """
    return ".".join(map(str, _query("nvrtcVersion")))


def supported_sms() -> frozenset[int]:
    """Numbers of the SMs that this NVRTC compiles for, such as 89."""
    return frozenset(_query("nvrtcGetSupportedArchs")[-1])


def _query(function: str) -> list[Any]:
    status, *rest = _call(getattr(_nvrtc(), function))
    if status:
        raise CompilerMissingError(problem=f"{function} answers {status}")
    return rest


def compile_source(source: KernelSource, sm: Sm, *defines: str) -> Compiled:
    """Compiles for one SM with macros such as `N=3`; a refusal is a result, its log says why."""
    nvrtc = _nvrtc()
    names = [name.encode() for name, _ in source.headers]
    texts = [text.encode() for _, text in source.headers]
    file = f"{source.name}.cu".encode()
    status, program = _call(
        nvrtc.nvrtcCreateProgram, source.text.encode(), file, len(names), texts, names
    )
    if status:
        return Compiled(ptx=None, cubin=None, log=f"nvrtcCreateProgram answers {status}")
    try:
        macros = (f"--define-macro={define}" for define in defines)
        options = [o.encode() for o in (f"--gpu-architecture={sm}", *OPTIONS, *macros)]
        (status,) = _call(nvrtc.nvrtcCompileProgram, program, len(options), options)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        if status:
            return Compiled(ptx=None, cubin=None, log=log or f"nvrtcCompileProgram: {status}")
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        cubin = _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return Compiled(ptx=ptx, cubin=cubin, log=log)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _nvrtc() -> Any:  # noqa: ANN401 - the bindings carry no types
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise CompilerMissingError(problem=f"cuda.bindings cannot be imported: {error}") from error
    return nvrtc


def _call(function: Callable[..., Any], *given: object) -> tuple[Any, ...]:
    """The name of the status, empty where all went well, and what else is answered."""
    try:
        status, *rest = function(*given)
    except RuntimeError as error:  # the bindings' own word for a library that is not there
        raise CompilerMissingError(problem=f"NVRTC cannot be loaded: {error}") from error
    return (status.name if int(status) else "", *rest)


def _bytes(size_of: Callable[..., Any], fill: Callable[..., Any], program: object) -> bytes:
    status, size = _call(size_of, program)
    if status or not size:
        return b""
    buffer = bytes(size)
    _call(fill, program, buffer)
    return buffer


def _text(size_of: Callable[..., Any], fill: Callable[..., Any], program: object) -> str:
    """As `_bytes`, without the zero that ends a C string."""
    return _bytes(size_of, fill, program).rstrip(b"\0").decode(errors="replace")
