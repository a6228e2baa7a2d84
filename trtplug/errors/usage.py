"""Wrong use: a flag, a value or a combination that cannot be meant."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import BAD_INPUT, TrtplugError


class UsageError(TrtplugError):
    """Unknown flag, bad value or conflicting options."""

    code: ClassVar[str] = "usage"
    exit_status: ClassVar[int] = BAD_INPUT
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """The problem as given."""
        return self.problem

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class ShapeError(TrtplugError):
    """The given shapes do not fit the model; lists every problem."""

    code: ClassVar[str] = "shape"
    exit_status: ClassVar[int] = BAD_INPUT
    model: str
    problems: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        """Every problem, one a line."""
        lines = "\n".join(f"  {p}" for p in self.problems)
        return f"the shapes do not fit {self.model}:\n{lines}"

    @property
    def hint(self) -> str:
        """The flags that would do."""
        return "give: " + " ".join(self.flags) if self.flags else ""


class UnknownTargetError(TrtplugError):
    """Unknown `--target`: not a GPU profile, an SM, `local` or `all`."""

    code: ClassVar[str] = "unknown-target"
    exit_status: ClassVar[int] = BAD_INPUT
    name: str
    nearest: tuple[str, ...]

    @property
    def message(self) -> str:
        """The name, and the nearest ones."""
        near = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"unknown target {self.name!r}{near}"

    @property
    def hint(self) -> str:
        """Where to look."""
        return "`trtplug targets` lists every name; an SM such as sm_89 works too"


class ConfigError(TrtplugError):
    """Invalid trtplug.toml."""

    code: ClassVar[str] = "config"
    exit_status: ClassVar[int] = BAD_INPUT
    file: str
    problem: str

    @property
    def message(self) -> str:
        """File and problem."""
        return f"{self.file}: {self.problem}"


class OptionUnsupportedError(TrtplugError):
    """The installed builder does not have this option or value."""

    code: ClassVar[str] = "option-unsupported"
    exit_status: ClassVar[int] = BAD_INPUT
    option: str
    backend: str
    version: str
    since: str | None = None
    removed: str | None = None
    advice: str = ""

    @property
    def message(self) -> str:
        """Option, installed version, and the versions that have it."""
        what = f"{self.option}: backend {self.backend} {self.version} does not have it"
        if self.removed is not None:
            return f"{what}; TensorRT {self.removed} removed it"
        return f"{what}; it came with TensorRT {self.since}" if self.since else what

    @property
    def hint(self) -> str:
        """What to do instead."""
        return self.advice
