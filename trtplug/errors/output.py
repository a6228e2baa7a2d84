"""Output that cannot be written."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import BAD_INPUT, MACHINE_LACKS, TrtplugError


class OutputError(TrtplugError):
    """The output folder or file cannot be written."""

    code: ClassVar[str] = "output"
    exit_status: ClassVar[int] = MACHINE_LACKS
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"cannot write {self.path}: {self.problem}"

    @property
    def hint(self) -> str:
        """What is left behind."""
        return "nothing was left half-written; free the space or choose another --out"


class OutputInTheWayError(TrtplugError):
    """`--out` exists and is not a bundle of trtplug."""

    code: ClassVar[str] = "output-in-the-way"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"{self.path} will not be replaced: {self.problem}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "choose another --out, or move what is there"
