"""Timing caches, locks and pinned tactics that cannot be used as they were asked for."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import BAD_INPUT, BUILD_FAILED, MACHINE_LACKS, TrtplugError


class CacheUnusableError(TrtplugError):
    """The timing cache is damaged or has no usable sidecar."""

    code: ClassVar[str] = "cache-unusable"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    problem: str
    advice: str = "`trtplug cache export` writes the cache and its sidecar; keep the two together"

    @property
    def message(self) -> str:
        """Path and problem."""
        return f"{self.path} cannot be used as a timing cache: {self.problem}"

    @property
    def hint(self) -> str:
        """What makes a usable one, unless another advice fits better."""
        return self.advice


class CacheMismatchError(TrtplugError):
    """The timing cache is for another GPU, driver, CUDA, TensorRT or set of flags."""

    code: ClassVar[str] = "cache-mismatch"
    exit_status: ClassVar[int] = BAD_INPUT
    path: str
    wanted: str
    differences: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """Path, what it was compared with, and each field that differs."""
        lines = "\n".join(f"  {d}" for d in self.differences)
        return f"{self.path} is not a timing cache for {self.wanted}:\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class TacticUnavailableError(TrtplugError):
    """A `--pin`, `--ban` or `--prefer` is not possible."""

    code: ClassVar[str] = "tactic-unavailable"
    exit_status: ClassVar[int] = BAD_INPUT
    layer: str
    problem: str
    legal: tuple[str, ...]
    """Tactics of that layer, or layers where the layer is not known."""

    @property
    def message(self) -> str:
        """Layer, problem, and what there is."""
        lines = "".join(f"\n  {entry}" for entry in self.legal)
        return f"{self.layer}: {self.problem}" + (f"; there are:{lines}" if lines else "")

    @property
    def hint(self) -> str:
        """Where to look."""
        return "`trtplug tactics BUNDLE` lists every layer with its tactics"


class LockMismatchError(TrtplugError):
    """The build with `--locked` differs from the lock; nothing was written."""

    code: ClassVar[str] = "lock-mismatch"
    exit_status: ClassVar[int] = BUILD_FAILED
    path: str
    differences: tuple[str, ...]

    @property
    def message(self) -> str:
        """The lock and each difference."""
        lines = "\n".join(f"  {d}" for d in self.differences)
        return f"the build does not agree with {self.path}:\n{lines}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "build without --locked to record a new lock; `trtplug lock diff` compares the two"


class LockUnqualifiedError(TrtplugError):
    """The lock was recorded with another GPU, driver or version and cannot be used here."""

    code: ClassVar[str] = "lock-unqualified"
    exit_status: ClassVar[int] = MACHINE_LACKS
    path: str
    differences: tuple[str, ...]

    @property
    def message(self) -> str:
        """The lock and each field that differs."""
        lines = "\n".join(f"  {d}" for d in self.differences)
        return f"{self.path} is unqualified on this machine:\n{lines}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "record it again here: build without --locked"
