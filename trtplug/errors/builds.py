"""Backends that are missing, targets that they do not know, and builds that fail."""

from __future__ import annotations

from typing import ClassVar

from trtplug.errors.base import BUILD_FAILED, MACHINE_LACKS, TrtplugError


class BackendMissingError(TrtplugError):
    """No usable backend is installed."""

    code: ClassVar[str] = "backend-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    backend: str
    problem: str
    advice: str = ""

    @property
    def message(self) -> str:
        """Backend and problem."""
        return f"backend {self.backend} cannot be used here: {self.problem}"

    @property
    def hint(self) -> str:
        """How to get it."""
        return self.advice or "`trtplug doctor` says what is missing and how to get it"


class GpuMissingError(TrtplugError):
    """`--target local` on a machine without a usable GPU."""

    code: ClassVar[str] = "gpu-missing"
    exit_status: ClassVar[int] = MACHINE_LACKS
    problem: str

    @property
    def message(self) -> str:
        """What was found."""
        return f"no GPU to build for: {self.problem}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "name the target instead, such as --target rtx4090 or --target sm_89"


class GpuBusyError(TrtplugError):
    """Another build uses the GPU, and `--no-wait` was given."""

    code: ClassVar[str] = "gpu-busy"
    exit_status: ClassVar[int] = MACHINE_LACKS
    gpu: str
    holder: str

    @property
    def message(self) -> str:
        """The GPU, and who holds it as far as is known."""
        who = f" ({self.holder})" if self.holder else ""
        return f"another build is running on {self.gpu}{who}"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "leave out --no-wait: two builds at once would time each other's kernels"


class TargetUnsupportedError(TrtplugError):
    """The backend cannot build for this target."""

    code: ClassVar[str] = "target-unsupported"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    backend: str
    supported: tuple[str, ...]
    who: str

    @property
    def message(self) -> str:
        """Target, and what the backend can build for."""
        return (
            f"backend {self.backend} cannot build for {self.target}; "
            f"it builds for {', '.join(self.supported)}"
        )

    @property
    def hint(self) -> str:
        """Who could."""
        return self.who


class PluginDroppedError(TrtplugError):
    """`--plugin always` was given, and a planned plugin is not in the engine."""

    code: ClassVar[str] = "plugin-dropped"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    sites: tuple[str, ...]

    @property
    def message(self) -> str:
        """Target and sites."""
        names = ", ".join(map(repr, self.sites))
        return f"the engine has no plugin layer for {names} ({self.target})"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "build.log says what became of them; --plugin auto warns of it and goes on"


class ParseFailedError(TrtplugError):
    """The backend's ONNX parser rejected the model."""

    code: ClassVar[str] = "parse-failed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    refusals: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """Each refusal: node, type, reason."""
        lines = "\n".join(f"  {r}" for r in self.refusals)
        return f"the builder's parser refused the model ({self.target}):\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class BuildFailedError(TrtplugError):
    """The builder failed and reported why."""

    code: ClassVar[str] = "build-failed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    reasons: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """The builder's own errors."""
        lines = "\n".join(f"  {r}" for r in self.reasons) or "  the builder gave no reason"
        return f"the build for {self.target} failed:\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice


class TrialFailedError(TrtplugError):
    """The finished engine cannot be loaded, or its trial run failed."""

    code: ClassVar[str] = "trial-failed"
    exit_status: ClassVar[int] = BUILD_FAILED
    problem: str

    @property
    def message(self) -> str:
        """The problem as given."""
        return self.problem


class BuilderCrashedError(TrtplugError):
    """The builder's process crashed."""

    code: ClassVar[str] = "builder-crashed"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    how: str
    last_lines: tuple[str, ...]
    advice: str = ""

    @property
    def message(self) -> str:
        """How it died, and its last words."""
        lines = "\n".join(f"  {r}" for r in self.last_lines)
        what = f"the builder crashed while building for {self.target} ({self.how})"
        return f"{what}; its last lines:\n{lines}"

    @property
    def hint(self) -> str:
        """The advice as given."""
        return self.advice or "build.log in the bundle has all of it"


class BuildTimeoutError(TrtplugError):
    """The build exceeded its time limit."""

    code: ClassVar[str] = "build-timeout"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    limit_s: float

    @property
    def message(self) -> str:
        """Target and limit."""
        limit = f"its time limit of {self.limit_s:g} s"
        return f"the build for {self.target} passed {limit} and was stopped"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "raise --timeout"


class BuildMemoryError(TrtplugError):
    """The build exceeded its memory limit, or the system killed it when memory ran out."""

    code: ClassVar[str] = "build-memory"
    exit_status: ClassVar[int] = BUILD_FAILED
    target: str
    peak_bytes: int
    limit_bytes: int | None

    @property
    def message(self) -> str:
        """Target, peak and limit."""
        peak = f"{self.peak_bytes / 2**20:.0f} MiB"
        what = f"the build for {self.target}"
        if self.limit_bytes is None:
            return f"{what} was killed from outside at {peak}: out of host memory, most likely"
        limit = f"{self.limit_bytes / 2**20:.0f} MiB"
        return f"{what} passed its memory limit of {limit} (it held {peak}) and was stopped"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "raise --memory-limit, or build fewer targets at once with --jobs 1"


class PluginNameClashError(TrtplugError):
    """A plugin cannot be registered: its name, version and namespace are taken."""

    code: ClassVar[str] = "plugin-name-clash"
    exit_status: ClassVar[int] = BUILD_FAILED
    ours: str
    other: str

    @property
    def message(self) -> str:
        """Our plugin, and the one in its way."""
        return f"our plugin {self.ours} cannot be registered: {self.other} has that name already"

    @property
    def hint(self) -> str:
        """How to go on."""
        return "load it from no --plugin-library, or build with --plugin never"
