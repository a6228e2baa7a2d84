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
    nvrtc = _nvrtc()
    status, major, minor = _call(nvrtc.nvrtcVersion)
    if status:
        raise CompilerMissingError(problem=f"nvrtcVersion answers {status}")
    return f"{major}.{minor}"


def supported_sms() -> frozenset[int]:
    """Numbers of the SMs that this NVRTC compiles for, such as 89."""
    status, *rest = _call(_nvrtc().nvrtcGetSupportedArchs)
    if status:
        raise CompilerMissingError(problem=f"nvrtcGetSupportedArchs answers {status}")
    return frozenset(rest[-1])


def compile_source(source: KernelSource, sm: Sm, *defines: str) -> Compiled:
    """Compiles for one SM; a refusal is a result, with the compiler's words in its log.

    Args:
        source: what is compiled.
        sm: for what.
        defines: macros, such as `N=3`.
    """
    nvrtc = _nvrtc()
    names = [name.encode() for name, _ in source.headers]
    texts = [text.encode() for _, text in source.headers]
    status, program = _call(
        nvrtc.nvrtcCreateProgram,
        source.text.encode(),
        f"{source.name}.cu".encode(),
        len(names),
        texts,
        names,
    )
    if status:
        return Compiled(ptx=None, cubin=None, log=f"nvrtcCreateProgram answers {status}")
    try:
        macros = (f"--define-macro={define}" for define in defines)
        options = [o.encode() for o in (f"--gpu-architecture={sm}", *OPTIONS, *macros)]
        (status,) = _call(nvrtc.nvrtcCompileProgram, program, len(options), options)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(
            errors="replace"
        )
        if status:
            return Compiled(ptx=None, cubin=None, log=log or f"nvrtcCompileProgram: {status}")
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).decode()
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


def _text(size_of: Callable[..., Any], fill: Callable[..., Any], program: object) -> bytes:
    """As `_bytes`, without the zero that ends a C string."""
    return _bytes(size_of, fill, program).rstrip(b"\0")
