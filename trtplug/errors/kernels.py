"""Compilers and tools that are missing, PTX and launches that the emulator refuses."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import FAULT, MACHINE_LACKS, TrtplugError


class PtxError(TrtplugError):
    """The emulator does not support a PTX instruction."""

    code: ClassVar[str] = "ptx"
    exit_status: ClassVar[int] = FAULT
    problem: str
    line: int
    """1-based line of the PTX text."""

    @property
    def message(self) -> str:
        """Line and problem."""
        return f"PTX line {self.line}: {self.problem}"


class LaunchError(TrtplugError):
    """Kernel launch with a wrong grid, block or arguments."""

    code: ClassVar[str] = "launch"
    exit_status: ClassVar[int] = FAULT
    kernel: str
    problem: str

    @property
    def message(self) -> str:
        """Kernel and problem."""
        return f"cannot launch {self.kernel}: {self.problem}"


class CompilerMissingError(TrtplugError):
    """NVRTC is not installed or cannot be loaded."""

    code: ClassVar[str] = "compiler-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    problem: str

    @property
    def message(self) -> str:
        """What is missing."""
        return f"kernels cannot be compiled here: {self.problem}"

    @property
    def hint(self) -> str:
        """How to get it."""
        return "pip install 'trtplug[kernels]' brings NVRTC and its tools; no GPU is needed"


class ToolMissingError(TrtplugError):
    """A CUDA tool is not installed."""

    code: ClassVar[str] = "tool-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    tool: str
    package: str

    @property
    def message(self) -> str:
        """The program."""
        return f"{self.tool} is not installed: neither beside NVRTC nor on PATH"

    @property
    def hint(self) -> str:
        """How to get it."""
        return f"pip install {self.package}, or put a CUDA toolkit's bin folder on PATH"
